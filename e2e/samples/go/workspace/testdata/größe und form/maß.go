// A program that prints a measure.
package main

import (
	"fmt"

	"example.com/geometry/naming"
)

func ⟦measure⟧measure(height float64) string {
	return naming.⟦use-label⟧Label(fmt.Sprint(height))
}

func main() {
	fmt.Println(⟦use-measure⟧measure(1.5))
}
