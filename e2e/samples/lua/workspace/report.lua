local areas = require("areas")
local naming = require("naming")

print(areas.⟦use-in-report⟧total_area(2, 3))
print(naming.⟦use-label⟧label("two circles"))
