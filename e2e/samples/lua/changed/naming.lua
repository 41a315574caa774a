local naming = {}

--- What stands between two names.
naming.separator = ", "

--- The name as it is printed.
---@param name string
---@return string
function naming.⟦label⟧label(name)
  return name .. naming.separator
end

return naming
