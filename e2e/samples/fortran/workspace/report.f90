subroutine report()
  use geometry, only: ⟦import-in-report⟧total_area
  use measures, only: measure_width
  use naming, only: label_width
  implicit none
  print *, ⟦use-in-report⟧total_area(1.0, 2.0)
  print *, ⟦use-label-width⟧label_width(11)
  print *, ⟦use-measure-width⟧measure_width(3)
end subroutine report
