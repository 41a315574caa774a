#include "geometry.h"

/// Both halves of a pair.
static double ⟦doubled⟧doubled(double value) {
  return value + value;
}

bool is_flat(const Shape &shape) {
  return shape.area() == 0;
}

int main() {
  const Circle circle(1);
  const Square square(2);
  const Shape *shapes[] = {&circle, &square};
  return ⟦use-doubled⟧doubled(total_area(shapes, 2)) > 14 ? 0 : 1;
}
