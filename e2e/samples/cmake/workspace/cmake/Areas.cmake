# Adds up both areas.
function(⟦total-area⟧total_area result first second)
  math(EXPR sum "${first} + ${second}")
  set(${result} ${sum} PARENT_SCOPE)
endfunction()
