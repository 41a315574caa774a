use crate::circle::Circle;
use crate::shape::⟦import-in-report⟧total_area;

pub fn two_circles() -> f64 {
    ⟦use-in-report⟧total_area(&Circle { radius: 1.0 }, &Circle { radius: 2.0 })
}
