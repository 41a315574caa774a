// Package titles holds the titles of all pages.
package titles

import "example.com/geometry/naming"

// Titles are the titles.
var Titles = []string{"🧮📐📏🔺🔵🟥🔶🔷", naming.⟦behind-astral⟧Label("area")}
