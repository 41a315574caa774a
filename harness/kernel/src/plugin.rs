//! What a plugin is.

use async_trait::async_trait;

use crate::{Context, PluginError, ServiceKey};

/// A part of the runtime (RUN-1): it names what it needs and what it provides, and everything it
/// registers through its [`Context`] is undone when it is unloaded.
///
/// One plugin value may be started several times, one after the other: whenever its needs come back
/// (RUN-2). Each start gets a context of its own.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    /// The name for people, `dsh-lsp-stdio` for instance.
    fn name(&self) -> &str;

    /// The services without which it does not start. They stay available, through
    /// [`Context::service`], until it has been unloaded.
    fn needs(&self) -> Vec<ServiceKey> {
        Vec::new()
    }

    /// The services it provides, all of them by the end of [`start`](Self::start). They are visible
    /// to others from that moment.
    fn provides(&self) -> Vec<ServiceKey> {
        Vec::new()
    }

    /// Sets it up. Observe `ctx.cancel()` wherever this waits: unloading waits for this to return
    /// (CFG-6). On an error, and on a panic, what was registered so far is undone.
    async fn start(&self, ctx: &Context) -> Result<(), PluginError>;
}
