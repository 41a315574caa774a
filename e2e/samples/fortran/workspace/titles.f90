subroutine titles()
  use naming, only: label_width
  implicit none
  print *, "🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠", ⟦behind-astral⟧label_width(4)
end subroutine titles
