// A program that prints areas.
package main

import (
	"fmt"

	"example.com/geometry/shape"
)

// Both halves of a pair.
func ⟦doubled⟧doubled(value float64) float64 {
	return value + value
}

func isFlat(thing shape.Shape) bool {
	return thing.Area() == 0
}

func main() {
	circle, square := shape.Circle{Radius: 1}, shape.Square{Side: 2}
	total := ⟦use-doubled⟧doubled(shape.TotalArea(circle, square))
	fmt.Println(total, isFlat(circle))
	fmt.Println(report())
}
