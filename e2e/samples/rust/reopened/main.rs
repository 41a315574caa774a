mod circle;
#[path = "größe und form/maß.rs"]
mod measures;
mod naming;
mod report;
mod shape;
mod square;
mod titles;

use circle::Circle;
use shape::{total_area, Shape};
use square::Square;

/// Both halves of a pair.
fn ⟦doubled⟧doubled(value: f64) -> f64 {
    value + value
}

fn is_flat(shape: &dyn Shape) -> bool {
    shape.area() == 0.0
}

fn main() {
    let circle = Circle { radius: 1.0 };
    let square = Square { side: 2.0 };
    let total = ⟦use-doubled⟧doubled(total_area(&circle, &square));
    let flat = is_flat(&circle);
    println!("{total} {flat} {} {}", report::two_circles(), report::height());
    println!("{} {:?}", report::heading(), titles::titles());
}
