// Package shape knows what covers a part of the plane.
package shape

// Shape is anything that covers a part of the plane.
type Shape interface {
	// Area is the covered area, in square metres.
	Area() float64
}

// TotalArea adds up the areas of all shapes.
func ⟦total-area⟧TotalArea(shapes ...Shape) float64 {
	total := 0.0
	for _, shape := range shapes {
		total += shape.Area()
	}
	return total
}
