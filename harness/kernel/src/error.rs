//! What plugins and the kernel fail with.

use std::fmt;
use std::sync::Arc;

/// The failure of a plugin's start or of one of its undo steps.
///
/// The message is for people and ends in what to do next where that is known; the code, where there
/// is one, is stable and for routing. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PluginError {
    code: Option<Arc<str>>,
    message: Arc<str>,
}

impl PluginError {
    /// A failure without a code.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            code: None,
            message: message.to_string().into(),
        }
    }

    /// A failure that can be routed on `code`, `LSP_CONFLICT` for instance.
    pub fn with_code(code: &str, message: impl fmt::Display) -> Self {
        Self {
            code: Some(code.into()),
            message: message.to_string().into(),
        }
    }

    /// The stable code, where there is one.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

/// One thing that could not be undone while a plugin was unloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin}: undoing {effect}: {error}")]
pub struct DisposeFailure {
    /// The plugin's name.
    pub plugin: String,
    /// The name under which the effect was registered.
    pub effect: &'static str,
    /// What went wrong.
    pub error: PluginError,
}

/// Everything that failed while plugins were unloaded, together (DIS-5). Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisposeErrors(Vec<DisposeFailure>);

impl DisposeErrors {
    /// `Ok` when nothing failed.
    pub(crate) fn collect(failures: Vec<DisposeFailure>) -> Result<(), Self> {
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Self(failures))
        }
    }

    /// The failures, in the order in which they happened.
    pub fn failures(&self) -> &[DisposeFailure] {
        &self.0
    }
}

impl fmt::Display for DisposeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => only.fmt(f),
            several => {
                write!(f, "{} failures while unloading", several.len())?;
                for failure in several {
                    write!(f, "\n  {failure}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for DisposeErrors {}

/// What a panic said, for messages.
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIS-5.
    #[test]
    fn several_failures_are_told_together() {
        let failure = |effect| DisposeFailure {
            plugin: "p".to_owned(),
            effect,
            error: PluginError::with_code("X", "it broke"),
        };
        assert_eq!(DisposeErrors::collect(vec![]), Ok(()));
        let errors = DisposeErrors::collect(vec![failure("a"), failure("b")]).unwrap_err();
        assert_eq!(
            errors.to_string(),
            "2 failures while unloading\n  plugin p: undoing a: it broke\n  plugin p: undoing b: it broke"
        );
        assert_eq!(errors.failures()[0].error.code(), Some("X"));
    }
}
