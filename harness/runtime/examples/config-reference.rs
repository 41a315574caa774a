//! Prints the reference of the deployment file: every row and every key.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(dsh_harness::config_reference().as_bytes())
}
