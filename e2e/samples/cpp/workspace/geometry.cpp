#include "geometry.h"

double ⟦total-area⟧total_area(const Shape *const *shapes, int count) {
  double total = 0;
  for (int i = 0; i < count; ++i) {
    total += shapes[i]->area();
  }
  return total;
}
