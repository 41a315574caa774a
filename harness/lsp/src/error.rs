//! What can go wrong, with a stable code to route on (ERR-2).

use dsh_kernel::CancelReason;

/// The failure of a registration or a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LspError {
    /// No provider for the file's extension (SEAM-8), or it was removed before selection (SEAM-12).
    #[error("{0}")]
    Unavailable(String),
    /// The session has no workspace (TOOL-3).
    #[error("{0}")]
    WorkspaceRequired(String),
    /// A payload of the server that has none of the shapes LSP allows (NAV-3, HOV-3).
    #[error("{0}")]
    MalformedResponse(String),
    /// The provider was disposed (DIS-1).
    #[error("{0}")]
    Disposed(String),
    /// The id or an extension belongs to another live provider (SEAM-4).
    #[error("{0}")]
    Conflict(String),
    /// A registration that breaks the rules of SEAM-3.
    #[error("{0}")]
    InvalidProvider(String),
    /// The server does not advertise the operation, or its document synchronization does not fit
    /// (INI-6, OPN-2).
    #[error("{0}")]
    UnsupportedOperation(String),
    /// The caller gave up, or its deadline passed.
    #[error("query {0}")]
    Cancelled(CancelReason),
    /// The workspace or the source file was rejected before anything was sent (HST-1…3).
    #[error("{0}")]
    SourceRejected(String),
    /// The server broke the protocol: framing, JSON, handshake (FRM-7, INI-5).
    #[error("{0}")]
    ProtocolError(String),
    /// The server's process died, or closed a pipe (CRS-1).
    #[error("{0}")]
    ServerExited(String),
    /// The server answered with an error (ERR-1).
    #[error("the language server answered with error {server_code}: {message}")]
    ServerError {
        /// The server's own code.
        server_code: i64,
        /// The server's own message, or a text in its place.
        message: String,
    },
    /// The server answered `ContentModified` or `ServerCancelled`: asking again may help (ERR-3).
    #[error(
        "the language server's answer was out of date (error {server_code}: {message}); asking again may help"
    )]
    Stale {
        /// The server's own code.
        server_code: i64,
        /// The server's own message, or a text in its place.
        message: String,
    },
    /// A configuration that breaks the rules of CFG.
    #[error("{0}")]
    ConfigInvalid(String),
}

impl LspError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "LSP_UNAVAILABLE",
            Self::WorkspaceRequired(_) => "LSP_WORKSPACE_REQUIRED",
            Self::MalformedResponse(_) => "LSP_MALFORMED_RESPONSE",
            Self::Disposed(_) => "LSP_DISPOSED",
            Self::Conflict(_) => "LSP_CONFLICT",
            Self::InvalidProvider(_) => "LSP_INVALID_PROVIDER",
            Self::UnsupportedOperation(_) => "LSP_UNSUPPORTED_OPERATION",
            Self::Cancelled(_) => "LSP_CANCELLED",
            Self::SourceRejected(_) => "LSP_SOURCE_REJECTED",
            Self::ProtocolError(_) => "LSP_PROTOCOL_ERROR",
            Self::ServerExited(_) => "LSP_SERVER_EXITED",
            Self::ServerError { .. } => "LSP_SERVER_ERROR",
            Self::Stale { .. } => "LSP_STALE",
            Self::ConfigInvalid(_) => "LSP_CONFIG_INVALID",
        }
    }

    /// The server's own error code, where it gave one.
    pub const fn server_code(&self) -> Option<i64> {
        match self {
            Self::ServerError { server_code, .. } | Self::Stale { server_code, .. } => {
                Some(*server_code)
            }
            _ => None,
        }
    }
}

impl From<CancelReason> for LspError {
    /// A disposal is its own outcome, told apart from a caller that gave up (ERR-5).
    fn from(reason: CancelReason) -> Self {
        match reason {
            CancelReason::Disposed => Self::Disposed("the language server was disposed".to_owned()),
            reason => Self::Cancelled(reason),
        }
    }
}
