<?php

/** Adds up all numbers. */
function ⟦total⟧total(int ...$numbers): int
{
    return array_sum($numbers);
}
