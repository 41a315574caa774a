#!/usr/bin/env bash

# Prints the way around a square, given the length of its side.
⟦perimeter⟧perimeter() {
  echo $((4 * $1))
}
