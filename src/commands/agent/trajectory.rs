//! The run as a page.

use std::path::Path;

use dsh_harness::session::Session;
use dsh_reports::{SESSION_FORMAT, read_session, render_trajectory};
use dsh_transcript::Recorder;
use serde_json::json;

use crate::exit::Exit;
use crate::shell::Shell;

/// Writes the page of a session, and of what passed on the wire meanwhile.
pub(super) fn keep(
    shell: &Shell,
    file: &Path,
    session: &Session,
    recorder: &Recorder,
    exit: Exit,
) -> Exit {
    super::write(shell, file, page(session, recorder), exit)
}

fn page(session: &Session, recorder: &Recorder) -> Result<String, String> {
    let lines = lines(session).map_err(|error| error.to_string())?;
    let log = read_session(&lines).map_err(|error| error.to_string())?;
    render_trajectory(&log, Some(&recorder.events())).map_err(|error| error.to_string())
}

/// The session as its file has it, or would have it: the page is made from what anybody can read.
fn lines(session: &Session) -> serde_json::Result<Vec<u8>> {
    let head = json!({ "format": SESSION_FORMAT, "header": session.header() });
    let mut lines = serde_json::to_vec(&head)?;
    lines.push(b'\n');
    session.read(|log| {
        for event in log.events() {
            serde_json::to_writer(&mut lines, &**event)?;
            lines.push(b'\n');
        }
        Ok(lines)
    })
}
