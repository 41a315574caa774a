use crate::naming::label;

/// The height as people say it.
pub fn ⟦measure⟧measure(height: f64) -> String {
    ⟦use-label⟧label(&format!("{height} metres"))
}
