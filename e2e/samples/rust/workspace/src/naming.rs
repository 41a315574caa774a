/// The name as it is printed.
pub fn ⟦label⟧label(name: &str) -> String {
    name.trim().to_owned()
}
