//! What the model reads when a query failed (ERR-5, TOOL-13).
//!
//! The seam's errors say what happened; here comes what the model can do about it, where there is
//! something. No text invites to ask over and over.

use dsh_lsp::LspError;
use dsh_tools::ToolError;

use crate::args::CONVENTION;
use crate::text::bounded;

/// The failure as the tool's: the code is the seam's own, the message is at most `most` UTF-16
/// code units long.
pub(crate) fn failure(error: &LspError, most: usize) -> ToolError {
    ToolError::new(error.code(), bounded(&told(error), most))
}

fn told(error: &LspError) -> String {
    match error {
        LspError::ServerError {
            server_code,
            message,
        } => format!(
            "the language server answered with error {server_code}: {}. Some servers answer so \
             when the position is outside the file; {CONVENTION}.",
            clause(message)
        ),
        LspError::Stale {
            server_code,
            message,
        } => format!(
            "the language server took its answer back because its state changed meanwhile (error \
             {server_code}: {}). Asking once more may help; if it does not, use search and \
             read.",
            clause(message)
        ),
        LspError::Unavailable(_)
        | LspError::UnsupportedOperation(_)
        | LspError::WorkspaceRequired(_) => {
            format!(
                "{}. Use search and read instead.",
                clause(&error.to_string())
            )
        }
        error => error.to_string(),
    }
}

/// A message as part of a sentence: its own full stop would make two.
fn clause(message: &str) -> &str {
    message.trim_end().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dsh_kernel::CancelReason;

    use super::*;

    fn samples() -> Vec<LspError> {
        let text = || "what happened".to_owned();
        vec![
            LspError::Unavailable(text()),
            LspError::WorkspaceRequired(text()),
            LspError::MalformedResponse(text()),
            LspError::Disposed(text()),
            LspError::UnsupportedOperation(text()),
            LspError::Cancelled(CancelReason::Caller),
            LspError::Cancelled(CancelReason::Timeout(Duration::from_mins(1))),
            LspError::SourceRejected(text()),
            LspError::ProtocolError(text()),
            LspError::ServerExited(text()),
            LspError::ServerError {
                server_code: -32603,
                message: "It broke.".to_owned(),
            },
            LspError::Stale {
                server_code: -32801,
                message: text(),
            },
        ]
    }

    /// TOOL-13, ERR-5: each failure has words of its own, and keeps its code.
    #[test]
    fn every_failure_is_told_in_words() {
        let mut lines = Vec::new();
        for error in samples() {
            let told = failure(&error, 16_000);
            assert_eq!(told.code(), error.code());
            lines.push(format!("{}: {}", told.code(), told.message()));
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    /// TOOL-7: the end of a server's stderr makes no failure longer than a result may be.
    #[test]
    fn a_long_failure_is_cut() {
        let error = LspError::ServerExited("x".repeat(1_000_000));
        let told = failure(&error, 200);
        assert_eq!(told.message().len(), 200);
        assert!(told.message().ends_with("the limit is 200]"));
    }
}
