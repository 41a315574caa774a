package Geometry::Circle;

use strict;
use warnings;
use parent -norequire, 'Geometry::Shape';

sub new { my ($class, $radius) = @_; return bless { radius => $radius }, $class }

sub area { my ($self) = @_; return 3.14159 * $self->{radius} ** 2 }

1;
