package main

import (
	"example.com/geometry/naming"
	"example.com/geometry/shape"
)

func report() (string, float64) {
	area := shape.⟦use-in-report⟧TotalArea(shape.Circle{Radius: 1}, shape.Circle{Radius: 2})
	return naming.⟦use-label⟧Label("two circles"), area
}
