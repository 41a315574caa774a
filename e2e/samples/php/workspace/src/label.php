<?php

/** Puts a label on a number. */
function ⟦tag⟧tag(int $value): string
{
    return "no. $value";
}
