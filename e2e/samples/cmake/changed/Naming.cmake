# What stands between two names.
set(SEPARATOR ", ")

# The name as it is printed.
function(⟦label⟧label result name)
  set(${result} "${name}${SEPARATOR}" PARENT_SCOPE)
endfunction()
