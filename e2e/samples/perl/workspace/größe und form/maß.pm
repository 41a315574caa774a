package Measures;

use strict;
use warnings;
use Geometry::Naming;

# The height as people say it.
sub ⟦print-measure⟧print_measure { my ($height) = @_; return Geometry::Naming::⟦use-print-label⟧print_label("$height metres") }

1;
