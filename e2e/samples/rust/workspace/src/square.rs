use crate::shape::Shape;

pub struct Square {
    pub side: f64,
}

impl Shape for ⟦square⟧Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
}
