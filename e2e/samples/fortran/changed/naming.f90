module naming
  implicit none
  !> What stands on either side of a label.
  integer, parameter :: padding = 4
contains
  !> How many letters a label has room for.
  function ⟦label-width⟧label_width(letters) result(width)
    integer, intent(in) :: letters
    integer :: width
    width = letters + padding
  end function label_width
end module naming
