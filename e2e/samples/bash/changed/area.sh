#!/usr/bin/env bash

# Prints the length of the way around nothing.
nothing() {
  echo 0
}

# Prints the area of a square, given the length of its side.
⟦square-area⟧square_area() {
  echo $(($1 * $1))
}
