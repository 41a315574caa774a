#include "größe und form/maß.h"
#include "naming.h"

int title_width() {
  const char *mark = "🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤"; return *mark + ⟦behind-astral⟧label_width(4);
}

int metre_width() {
  return ⟦use-measure-width⟧measure_width(3);
}
