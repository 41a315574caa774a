#!/usr/bin/env bash

source ./lib/area.sh
source ./lib/label.sh
source "./étage un/pièce à part.sh"

side=3
echo "one square covers $(⟦use-square-area⟧square_area "$side")"
echo "🎈🎈🎈🎈🎈🎈 $(⟦use-tag⟧tag 7)"
⟦use-perimeter⟧perimeter "$side"
