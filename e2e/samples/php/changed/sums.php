<?php

const NOTHING = 0;

/** Adds up all numbers. */
function ⟦total⟧total(int ...$numbers): int
{
    return NOTHING + array_sum($numbers);
}
