module Sums exposing (nothing, total)


nothing : Int
nothing =
    0


{-| Adds up all numbers.
-}
⟦total-type⟧total : List Int -> Int
⟦total⟧total numbers =
    case numbers of
        [] ->
            nothing

        first :: rest ->
            first
