package Geometry::Naming;

use strict;
use warnings;

# What stands between two names.
our $separator = ', ';

# The name as it is printed.
sub ⟦print-label⟧print_label { my ($name) = @_; return $name . $separator }

1;
