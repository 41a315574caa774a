module Sums exposing (⟦total-exposed⟧total)


{-| Adds up all numbers.
-}
⟦total-type⟧total : List Int -> Int
⟦total⟧total numbers =
    case numbers of
        [] ->
            0

        first :: rest ->
            first
