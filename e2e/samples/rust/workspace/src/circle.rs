use crate::shape::Shape;

pub struct Circle {
    pub radius: f64,
}

impl Shape for ⟦circle⟧Circle {
    fn area(&self) -> f64 {
        3.14159 * self.radius * self.radius
    }
}
