//! The built-in harness in the process of the runner, for debugging.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::Value;

use super::built_in::Server;
use super::{CallError, Description, PendingCall, Subject, SubjectSource};

/// The built-in harness, mounted in this process.
pub struct InProcess {
    description: Description,
    server: Server,
    next: AtomicU64,
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcess {
    /// A harness with nothing mounted.
    pub fn new() -> Self {
        Self {
            description: Server::description(),
            server: Server::new(),
            next: AtomicU64::new(1),
        }
    }
}

#[async_trait]
impl Subject for InProcess {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn request(&self, method: &str, params: Value) -> PendingCall {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let outcome = self.server.request(&id.to_string(), method, params).await;
        PendingCall { id, outcome }
    }

    async fn cancel(&self, id: u64, reason: &str) {
        self.server.cancel(&id.to_string(), reason);
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    async fn end(&self) {
        self.server.close().await;
    }
}

/// Gives each case a harness of its own in this process.
pub struct InProcessSource {
    description: Description,
}

impl Default for InProcessSource {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcessSource {
    /// The source.
    pub fn new() -> Self {
        Self {
            description: Server::description(),
        }
    }
}

#[async_trait]
impl SubjectSource for InProcessSource {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn take(&self) -> Result<Arc<dyn Subject>, CallError> {
        Ok(Arc::new(InProcess::new()))
    }

    async fn give_back(&self, subject: Arc<dyn Subject>, _sound: bool) {
        subject.end().await;
    }

    async fn close(&self) {}
}
