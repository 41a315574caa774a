//! Makes anew what is published of `reports/published/servers.json`: `servers.md` and
//! `servers.html` beside it, the baseline that CI holds servers to, and the table in the README
//! between its two comments. `tests/published.rs` holds that they are current.

use std::io::{Error, Write as _};
use std::path::Path;

const BEGIN: &str = "<!-- servers: begin -->\n";
const END: &str = "<!-- servers: end -->\n";

fn main() -> std::io::Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = root.join("reports/published");
    let text = std::fs::read_to_string(folder.join("servers.json"))?;
    let report = dsh_reports::read(&text).map_err(Error::other)?;
    let page = dsh_reports::render_page(std::slice::from_ref(&report)).map_err(Error::other)?;
    std::fs::write(
        folder.join("servers.md"),
        dsh_reports::render_markdown(&report),
    )?;
    std::fs::write(folder.join("servers.html"), page)?;

    let mut baseline = dsh_reports::Baseline::default();
    for run in &report.runs {
        // What could not be judged is not there to be compared with.
        let _accepted = baseline.accept(run, &report.platform);
    }
    let text = baseline.render().map_err(Error::other)?;
    std::fs::write(root.join("e2e/baseline.json"), text)?;

    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path)?;
    let parts = readme
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        return Err(Error::other(format!(
            "README.md has no place for the table: two lines, {} and {}",
            BEGIN.trim(),
            END.trim()
        )));
    };
    let summary = dsh_reports::render_summary(&report);
    std::fs::write(path, format!("{before}{BEGIN}{summary}{END}{after}"))?;
    writeln!(
        std::io::stdout(),
        "{} servers in servers.md, servers.html and README.md",
        report.runs.len()
    )
}
