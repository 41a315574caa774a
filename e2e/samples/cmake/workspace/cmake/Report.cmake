include(cmake/Areas.cmake)
include(cmake/Naming.cmake)
include("größe und form/maß.cmake")

⟦use-in-report⟧total_area(area 2 3)
⟦use-label⟧label(heading "two circles: ${area}")
⟦use-measure⟧measure(height 2)
