//! Prints a JSON Schema: without an argument that of a report, what
//! `schema/dsh-conform-report-1.json` has to hold; with `baseline` that of
//! `schema/dsh-conform-baseline-1.json`.

use std::io::{Error, Write as _};

fn main() -> std::io::Result<()> {
    let schema = match std::env::args().nth(1).as_deref() {
        None => dsh_reports::schema(),
        Some("baseline") => dsh_reports::baseline_schema(),
        Some(_) => return Err(Error::other("the only argument known is baseline")),
    };
    writeln!(std::io::stdout(), "{schema:#}")
}
