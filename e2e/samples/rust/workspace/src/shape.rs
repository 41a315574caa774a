/// Anything that covers a part of the plane.
pub trait Shape {
    /// The covered area, in square metres.
    fn area(&self) -> f64;
}

/// Adds up the areas of both shapes.
pub fn ⟦total-area⟧total_area(first: &dyn Shape, second: &dyn Shape) -> f64 {
    first.area() + second.area()
}
