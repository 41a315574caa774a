use strict;
use warnings;
use lib 'lib';
use Geometry::Circle;
use Geometry::Naming;
use Geometry::Shape;

require './größe und form/maß.pm';

my $area = Geometry::Shape::⟦use-in-report⟧total_area(Geometry::Circle->new(1), Geometry::Circle->new(2));
print Geometry::Naming::⟦use-print-label⟧print_label($area);
print Measures::⟦use-print-measure⟧print_measure(1.5);
