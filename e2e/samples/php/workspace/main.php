<?php

require_once __DIR__ . "/src/shape.php";
require_once __DIR__ . "/src/circle.php";
require_once __DIR__ . "/src/square.php";
require_once __DIR__ . "/src/sums.php";
require_once __DIR__ . "/src/label.php";

function isFlat(⟦use-shape⟧Shape $shape): bool
{
    return $shape->area() === 0;
}

echo ⟦use-total⟧total(1, 2, 3);
echo "🎈🎈🎈🎈🎈🎈" . ⟦use-tag⟧tag(7);
