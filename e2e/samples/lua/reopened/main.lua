local areas = require("areas")

--- Both halves of a pair.
local function ⟦doubled⟧doubled(value)
  return value + value
end

print(⟦use-doubled⟧doubled(areas.total_area(1, 4)))
