// Package naming knows how shapes are called.
package naming

// Separator stands between two names.
const Separator = ", "

// Label is the name as it is printed.
func ⟦label⟧Label(name string) string { return name + Separator }
