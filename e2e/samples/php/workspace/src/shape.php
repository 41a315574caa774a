<?php

interface Shape
{
    /** The covered area, in square metres. */
    public function area(): int;
}
