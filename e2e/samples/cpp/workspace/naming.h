#pragma once

/// How many letters a label has room for.
inline int ⟦label-width⟧label_width(int letters) { return letters + 2; }
