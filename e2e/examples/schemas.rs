//! Prints a JSON Schema: `catalogue` for what `servers/schema.json` has to hold, `sample` for
//! `samples/schema.json`.

use std::io::{Error, Write as _};

fn main() -> std::io::Result<()> {
    let schema = match std::env::args().nth(1).as_deref() {
        Some("catalogue") => dsh_e2e::catalogue::schema(),
        Some("sample") => dsh_e2e::samples::schema(),
        _ => return Err(Error::other("say which one: catalogue or sample")),
    };
    writeln!(std::io::stdout(), "{schema:#}")
}
