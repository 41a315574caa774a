local naming = require("naming")

--- The height as people say it.
local function ⟦measure⟧measure(height)
  return naming.⟦use-label⟧label(height .. " metres")
end

return { ⟦use-measure⟧measure(1.5) }
