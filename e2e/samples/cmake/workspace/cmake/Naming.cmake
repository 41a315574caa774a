# The name as it is printed.
function(⟦label⟧label result name)
  set(${result} "${name}." PARENT_SCOPE)
endfunction()
