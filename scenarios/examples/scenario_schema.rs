//! Prints the JSON Schema of scenario files: what `schema/scenario.schema.json` has to hold.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{:#}", dsh_scenarios::scenario_schema())
}
