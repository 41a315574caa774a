/// What stands between two names.
pub const SEPARATOR: &str = ", ";

/// The name as it is printed.
pub fn ⟦label⟧label(name: &str) -> String {
    name.trim().to_uppercase()
}
