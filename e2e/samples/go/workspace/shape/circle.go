package shape

// Circle is round.
type Circle struct{ Radius float64 }

// Area is the covered area.
func (c Circle) ⟦circle-area⟧Area() float64 { return 3.14159 * c.Radius * c.Radius }
