program main
  use geometry, only: circle, total_area
  implicit none
  type(circle) :: small
  real :: total

  small = circle(1.0)
  total = ⟦use-doubled⟧doubled(total_area(small%area(), 4.0))
  print *, total

contains

  !> Both halves of a pair.
  function ⟦doubled⟧doubled(value) result(both)
    real, intent(in) :: value
    real :: both
    both = value + value
  end function doubled
end program main
