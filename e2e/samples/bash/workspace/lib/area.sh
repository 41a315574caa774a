#!/usr/bin/env bash

# Prints the area of a square, given the length of its side.
⟦square-area⟧square_area() {
  echo $(($1 * $1))
}
