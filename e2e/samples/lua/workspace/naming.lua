local naming = {}

--- The name as it is printed.
---@param name string
---@return string
function naming.⟦label⟧label(name)
  return name .. "."
end

return naming
