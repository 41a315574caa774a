//! Failures in words (CRS-1, FRM-7, ERR-5). Pure.

use std::fmt::Write as _;

use dsh_lsp::{LspError, Operation};
use dsh_subprocess::ChildExit;

use crate::framing::Partial;
use crate::machine::Failure;

/// How much of the stderr tail an error repeats: enough for a stack trace, little enough to read.
const SHOWN_STDERR_BYTES: usize = 8 * 1024;

/// What is known about a process that failed.
#[derive(Clone, Debug)]
pub(crate) struct Scene<'a> {
    /// The provider id.
    pub(crate) id: &'a str,
    /// The command line, for people.
    pub(crate) command: &'a str,
    pub(crate) operation: Operation,
    /// Whether the handshake was over.
    pub(crate) initialized: bool,
    pub(crate) exit: Option<ChildExit>,
    pub(crate) stderr: &'a str,
    /// What of a message had come when the output ended.
    pub(crate) partial: Partial,
}

impl Scene<'_> {
    /// The error of the query that the failure hit.
    pub(crate) fn error(&self, failure: &Failure) -> LspError {
        let who = format!("language server {:?} ({})", self.id, self.command);
        let doing = self.doing();
        let exited = |what: &str| {
            LspError::ServerExited(format!(
                "{who} {what} {doing}{}{}",
                self.interrupted(),
                self.last_words()
            ))
        };
        match failure {
            Failure::Protocol(what) => {
                LspError::ProtocolError(format!("{who} broke the protocol {doing}: {what}"))
            }
            Failure::Refused(error) => refused(error),
            Failure::Died => match self.exit {
                Some(exit) => exited(&format!("ended with {exit}")),
                None => exited("ended"),
            },
            Failure::OutputClosed => exited("closed its stdout, without ending,"),
            Failure::InputClosed(None) => exited("closed its stdin, without ending,"),
            Failure::InputClosed(Some(error)) => {
                exited(&format!("no longer reads its stdin ({error})"))
            }
            // Nobody waits for these: the caller gave up, and was told so.
            Failure::Unresponsive => exited("did not settle a cancelled request"),
            Failure::NotReading => exited("stopped reading its stdin"),
            Failure::HandshakeGivenUp | Failure::OpenGivenUp => exited("was given up"),
        }
    }

    fn doing(&self) -> String {
        if self.initialized {
            format!("while answering {}", self.operation)
        } else {
            format!("while starting, for {}", self.operation)
        }
    }

    fn interrupted(&self) -> String {
        match self.partial {
            Partial::Nothing => String::new(),
            Partial::Header { received } => {
                format!(", in the middle of a message header ({received} bytes of it came)")
            }
            Partial::Body {
                received,
                announced,
            } => {
                format!(", in the middle of a message ({received} of {announced} bytes came)")
            }
        }
    }

    fn last_words(&self) -> String {
        let stderr = self.stderr.trim_end();
        if stderr.is_empty() {
            return "; it wrote nothing to stderr; run the command by hand to see what it needs"
                .to_owned();
        }
        let mut begin = stderr.len().saturating_sub(SHOWN_STDERR_BYTES);
        while !stderr.is_char_boundary(begin) {
            begin += 1;
        }
        let mut words = String::from("; its stderr ends with:\n");
        if begin > 0 {
            let _ = writeln!(words, "[{begin} bytes before this are left out]");
        }
        words.push_str(&stderr[begin..]);
        words
    }
}

/// The server's own words about a handshake that it refused.
fn refused(error: &LspError) -> LspError {
    match error.clone() {
        LspError::ServerError {
            server_code,
            message,
        }
        | LspError::Stale {
            server_code,
            message,
        } => LspError::ServerError {
            server_code,
            message: format!("initialize was refused: {message}"),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene<'static> {
        Scene {
            id: "x",
            command: "/bin/x --stdio",
            operation: Operation::Hover,
            initialized: true,
            exit: Some(ChildExit::Code(3)),
            stderr: "one\ntwo\n",
            partial: Partial::Nothing,
        }
    }

    /// CRS-1: exit status or signal, and the stderr tail, are in the error.
    #[test]
    fn a_death_is_told_with_status_and_stderr() {
        let error = scene().error(&Failure::Died);
        assert_eq!(error.code(), "LSP_SERVER_EXITED");
        assert_eq!(
            error.to_string(),
            "language server \"x\" (/bin/x --stdio) ended with exit code 3 while answering hover; its stderr ends with:\none\ntwo"
        );
        let early = Scene {
            initialized: false,
            exit: Some(ChildExit::Signal(9)),
            stderr: "",
            partial: Partial::Body {
                received: 3,
                announced: 9,
            },
            ..scene()
        };
        let text = early.error(&Failure::Died).to_string();
        assert!(text.contains("ended with signal 9 while starting, for hover, in the middle of a message (3 of 9 bytes came)"), "{text}");
        assert!(
            text.ends_with(
                "it wrote nothing to stderr; run the command by hand to see what it needs"
            ),
            "{text}"
        );
    }

    /// CRS-1: the three ways of going have words of their own.
    #[test]
    fn each_way_of_going_has_its_words() {
        for (failure, words) in [
            (Failure::OutputClosed, "closed its stdout"),
            (Failure::InputClosed(None), "closed its stdin"),
            (
                Failure::InputClosed(Some("broken pipe".to_owned())),
                "no longer reads its stdin (broken pipe)",
            ),
        ] {
            let error = scene().error(&failure);
            assert_eq!(error.code(), "LSP_SERVER_EXITED");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    /// FRM-7, FRM-10: the cause is in the error.
    #[test]
    fn a_broken_protocol_is_told_with_its_cause() {
        let error = scene().error(&Failure::Protocol(
            "stdout is not a frame stream".to_owned(),
        ));
        assert_eq!(error.code(), "LSP_PROTOCOL_ERROR");
        assert!(
            error.to_string().ends_with("stdout is not a frame stream"),
            "{error}"
        );
    }

    /// ERR-1: a refused handshake keeps code and message.
    #[test]
    fn a_refused_handshake_keeps_the_code() {
        let refused = LspError::Stale {
            server_code: -32802,
            message: "busy".to_owned(),
        };
        let error = scene().error(&Failure::Refused(refused));
        assert_eq!(
            (error.code(), error.server_code()),
            ("LSP_SERVER_ERROR", Some(-32802))
        );
        assert!(error.to_string().contains("initialize was refused: busy"));
    }

    /// ENV-5: a long tail is cut at the front, on a character.
    #[test]
    fn a_long_stderr_is_cut() {
        let stderr = format!("{}the end", "é".repeat(10_000));
        let text = Scene {
            stderr: &stderr,
            ..scene()
        }
        .error(&Failure::Died)
        .to_string();
        assert!(text.ends_with("the end"), "{text}");
        // 20007 bytes, the last 8192 of which begin in the middle of a character.
        assert!(
            text.contains("ends with:\n[11816 bytes before this are left out]\né"),
            "{text}"
        );
    }

    /// ENV-5: what is short enough is shown whole, to the byte.
    #[test]
    fn a_stderr_of_the_exact_length_is_whole() {
        let stderr = "x".repeat(8192);
        let told = |stderr: &str| {
            let scene = Scene { stderr, ..scene() };
            scene.error(&Failure::Died).to_string()
        };
        assert!(!told(&stderr).contains("left out"));
        let one_more = format!("y{stderr}");
        assert!(told(&one_more).contains("[1 bytes before this are left out]\nxx"));
    }
}
