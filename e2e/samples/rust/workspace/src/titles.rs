use crate::naming::label;

pub fn titles() -> (&'static str, String) {
    ("🧮📐📏🔺🔵🟥", ⟦behind-astral⟧label("area"))
}
