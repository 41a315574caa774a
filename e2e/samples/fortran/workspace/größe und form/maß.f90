module measures
  use naming, only: label_width
  implicit none
contains
  !> The width of a measure with its unit.
  function ⟦measure-width⟧measure_width(letters) result(width)
    integer, intent(in) :: letters
    integer :: width
    width = ⟦use-label-width⟧label_width(letters) + 1
  end function measure_width
end module measures
