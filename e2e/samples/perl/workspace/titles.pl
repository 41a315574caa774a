use strict;
use warnings;
use lib 'lib';
use Geometry::Naming;

print "🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠", Geometry::Naming::⟦behind-astral⟧print_label('area');
