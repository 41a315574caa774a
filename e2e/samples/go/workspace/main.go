// A program that prints areas.
package main

import (
	"fmt"

	"example.com/geometry/shape"
)

func isFlat(thing shape.Shape) bool {
	return thing.⟦use-area⟧Area() == 0
}

func main() {
	circle, square := shape.Circle{Radius: 1}, shape.Square{Side: 2}
	total := shape.⟦use-total-area⟧TotalArea(circle, square)
	fmt.Println(total, isFlat(circle))
	fmt.Println(report())
}
