#!/usr/bin/env bash

source ./lib/area.sh

for side in 1 2 3; do
  ⟦use-in-report⟧square_area "$side"
done
