#include "geometry.h"
#include "naming.h"

double two_circles() {
  const Circle small(1);
  const Circle large(2);
  const Shape *shapes[] = {&small, &large};
  return ⟦use-in-report⟧total_area(shapes, 2);
}

int heading_width() {
  return ⟦use-label-width⟧label_width(11);
}
