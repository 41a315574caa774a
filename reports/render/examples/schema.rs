//! Prints the JSON Schema of a report: what `schema/dsh-conform-report-1.json` has to hold.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{:#}", dsh_reports::schema())
}
