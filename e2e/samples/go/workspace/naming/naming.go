// Package naming knows how shapes are called.
package naming

// Label is the name as it is printed.
func ⟦label⟧Label(name string) string { return name + "." }
