package shape

// Square has four equal sides.
type Square struct{ Side float64 }

// Area is the covered area.
func (s Square) ⟦square-area⟧Area() float64 { return s.Side * s.Side }
