module Main exposing (label, rooms)

import Label exposing (tag)
import Sums exposing (⟦import-total⟧total)


rooms : Int
rooms =
    ⟦use-total⟧total [ 1, 2, 3 ]


label : ( String, String )
label =
    ( "🎈🎈🎈🎈🎈🎈", ⟦use-tag⟧tag "house" )
