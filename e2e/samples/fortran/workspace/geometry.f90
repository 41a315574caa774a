module geometry
  implicit none

  type :: circle
    real :: radius = 1.0
  contains
    procedure :: area => circle_area
  end type circle

contains

  !> The covered area, in square metres.
  function ⟦circle-area⟧circle_area(self) result(area)
    class(circle), intent(in) :: self
    real :: area
    area = 3.14159 * self%radius * self%radius
  end function circle_area

  !> Adds up both areas.
  function ⟦total-area⟧total_area(first, second) result(total)
    real, intent(in) :: first, second
    real :: total
    total = first + second
  end function ⟦end-total-area⟧total_area

end module geometry
