use crate::circle::Circle;
use crate::measures::measure;
use crate::naming::label;
use crate::shape::⟦import-in-report⟧total_area;

pub fn two_circles() -> f64 {
    ⟦use-in-report⟧total_area(&Circle { radius: 1.0 }, &Circle { radius: 2.0 })
}

pub fn heading() -> String {
    ⟦use-label⟧label("two circles")
}

pub fn height() -> String {
    ⟦use-measure⟧measure(1.5)
}
