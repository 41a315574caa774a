//! Prints the JSON Schema of clause records: what `schema/clauses.schema.json` has to hold.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{:#}", dsh_scenarios::clauses_schema())
}
