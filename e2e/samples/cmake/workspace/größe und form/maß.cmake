include(cmake/Naming.cmake)

# The height as people say it.
function(⟦measure⟧measure result height)
  ⟦use-label⟧label(text "${height} metres")
  ⟦use-builtin⟧message(STATUS "${text}")
endfunction()
