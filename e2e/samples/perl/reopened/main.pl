use strict;
use warnings;
use lib 'lib';
use Geometry::Circle;
use Geometry::Shape;

# Both halves of a pair.
sub ⟦doubled⟧doubled { my ($value) = @_; return $value + $value }

print ⟦use-doubled⟧doubled(Geometry::Shape::total_area(Geometry::Circle->new(1)));
