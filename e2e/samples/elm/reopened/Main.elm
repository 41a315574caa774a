module Main exposing (rooms)

import Sums exposing (total)


⟦doubled-type⟧doubled : Int -> List Int
⟦doubled⟧doubled value =
    [ value, value ]


rooms : Int
rooms =
    total (⟦use-doubled⟧doubled 2)
