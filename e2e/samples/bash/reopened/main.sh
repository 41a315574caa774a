#!/usr/bin/env bash

source ./lib/area.sh

# Prints a number twice as large.
⟦doubled⟧doubled() {
  echo $(($1 + $1))
}

side=3
echo "one square covers $(square_area "$side")"
echo "two sides are $(⟦use-doubled⟧doubled "$side") long"
