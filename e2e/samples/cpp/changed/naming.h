#pragma once

/// What stands on either side of a label.
constexpr int padding = 4;

/// How many letters a label has room for.
inline int ⟦label-width⟧label_width(int letters) { return letters + padding; }
