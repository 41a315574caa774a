program main
  use geometry, only: circle, ⟦import-in-main⟧total_area
  implicit none
  type(circle) :: small
  real :: total

  small = circle(1.0)
  total = ⟦use-total-area⟧total_area(small%⟦use-area⟧area(), 4.0)
  print *, total
end program main
