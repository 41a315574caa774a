<?php

require_once __DIR__ . "/src/sums.php";
require_once __DIR__ . "/étage un/pièce à part.php";

echo ⟦use-in-report⟧total(4, 5);
echo ⟦use-knock⟧knock();
