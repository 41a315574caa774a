local areas = require("areas")

print(areas.⟦use-total-area⟧total_area(1, 4))
