//! Prints the JSON Schema of files of mutants: what `schema/mutant.schema.json` has to hold.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{:#}", dsh_scenarios::mutate::mutant_schema())
}
