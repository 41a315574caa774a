#!/usr/bin/env bash

source ./lib/area.sh

side=3
echo "one square covers $(⟦use-square-area⟧square_area "$side")"
