package Geometry::Naming;

use strict;
use warnings;

# The name as it is printed.
sub ⟦print-label⟧print_label { my ($name) = @_; return "$name." }

1;
