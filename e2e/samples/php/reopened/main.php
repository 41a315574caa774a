<?php

require_once __DIR__ . "/src/sums.php";

/** Both halves of a pair. */
function ⟦doubled⟧doubled(int $value): int
{
    return $value + $value;
}

echo ⟦use-doubled⟧doubled(total(1, 2, 3));
