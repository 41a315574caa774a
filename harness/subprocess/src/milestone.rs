//! A value that is set once and awaited by many, at any time, on any runtime.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Milestone<T> {
    value: OnceLock<T>,
    reached: CancellationToken,
}

impl<T> Milestone<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: OnceLock::new(),
            reached: CancellationToken::new(),
        }
    }

    /// Sets the value and wakes whoever waits. Only the first call counts.
    pub(crate) fn reach(&self, value: T) {
        if self.value.set(value).is_ok() {
            self.reached.cancel();
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    pub(crate) async fn wait(&self) -> &T {
        self.reached.cancelled().await;
        self.value.get().expect("the value is set before the token")
    }
}
