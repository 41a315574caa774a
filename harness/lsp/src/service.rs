//! The service that consumers of the seam see.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dsh_kernel::Cancel;

use crate::{LspError, LspProvider, QueryRequest, QueryResult};

/// Registration of providers, and the one question that may be asked (SEAM-1, SEAM-14).
#[async_trait]
pub trait LspService: Send + Sync + 'static {
    /// Registers a provider for its id and all its extensions, or for nothing at all (SEAM-2).
    ///
    /// Fails with [`LspError::InvalidProvider`] or [`LspError::Conflict`].
    fn register_provider(&self, provider: Arc<dyn LspProvider>) -> Result<Registration, LspError>;

    /// Asks the provider of the file's final extension.
    ///
    /// There is no time limit of the seam's own: whoever wants one gives it through `cancel`, for
    /// instance with [`deadline`](crate::deadline) (SEAM-10).
    async fn query(&self, request: QueryRequest, cancel: &Cancel) -> Result<QueryResult, LspError>;
}

/// A registered provider. Releasing it, or dropping it, frees the id and every extension together
/// (SEAM-6).
#[must_use = "dropping a registration releases it"]
pub struct Registration {
    undo: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Registration {
    /// A registration that `undo` takes back.
    pub fn new(undo: impl FnOnce() + Send + 'static) -> Self {
        Self {
            undo: Mutex::new(Some(Box::new(undo))),
        }
    }

    /// Takes the registration back; the second time nothing happens.
    pub fn release(&self) {
        let undo = self
            .undo
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(undo) = undo {
            undo();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}
