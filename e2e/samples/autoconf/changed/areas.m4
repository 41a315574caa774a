# What stands between two areas.
AC_DEFUN([GEOMETRY_SEPARATOR], [separator=,])

# Adds up both areas.
AC_DEFUN([⟦total-area⟧GEOMETRY_TOTAL_AREA], [total=$(expr $1 + $2)])
