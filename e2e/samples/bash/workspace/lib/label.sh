#!/usr/bin/env bash

# Puts a label on a number.
⟦tag⟧tag() {
  echo "no. $1"
}
