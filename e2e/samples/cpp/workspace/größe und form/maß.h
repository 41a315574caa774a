#pragma once

#include "../naming.h"

/// The width of a measure with its unit.
inline int ⟦measure-width⟧measure_width(int letters) { return ⟦use-label-width⟧label_width(letters) + 1; }
