#include "geometry.h"

bool is_flat(const Shape &shape) {
  return shape.⟦use-area⟧area() == 0;
}

int main() {
  const Circle circle(1);
  const Square square(2);
  const Shape *shapes[] = {&circle, &square};
  return ⟦use-total-area⟧total_area(shapes, 2) > 7 ? 0 : 1;
}
