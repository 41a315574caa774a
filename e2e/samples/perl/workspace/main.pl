use strict;
use warnings;
use lib 'lib';
use Geometry::Circle;
use Geometry::Shape;

print Geometry::Shape::⟦use-total-area⟧total_area(Geometry::Circle->new(1));
