module naming
  implicit none
contains
  !> How many letters a label has room for.
  function ⟦label-width⟧label_width(letters) result(width)
    integer, intent(in) :: letters
    integer :: width
    width = letters + 2
  end function label_width
end module naming
