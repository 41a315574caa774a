//! The plugin that provides the subprocess service.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};

use crate::service::Subprocess;

/// Provides `dyn Subprocess`.
///
/// Unloading ends no process: each belongs to whoever started it, and those who need the service
/// are unloaded before it (DIS-3).
pub struct SubprocessLocalPlugin {
    provider: Arc<dyn Subprocess>,
}

impl SubprocessLocalPlugin {
    /// Provides `provider`: a [`LocalSubprocess`](crate::LocalSubprocess), or what stands in for it.
    pub fn new(provider: Arc<dyn Subprocess>) -> Self {
        Self { provider }
    }
}

#[async_trait]
impl Plugin for SubprocessLocalPlugin {
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "the trait lends the name from itself"
    )]
    fn name(&self) -> &str {
        "dsh-subprocess-local"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn Subprocess>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide(Arc::clone(&self.provider))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dsh_kernel::Kernel;

    use super::*;
    use crate::LocalSubprocess;

    /// RUN-1
    #[tokio::test]
    async fn the_service_is_provided_until_the_plugin_is_unloaded() {
        let kernel = Kernel::new();
        let provider: Arc<dyn Subprocess> = Arc::new(LocalSubprocess::new(BTreeMap::new()));
        let plugin = Arc::new(SubprocessLocalPlugin::new(Arc::clone(&provider)));
        let handle = kernel.mount(plugin).await.expect("mounted");
        let service = kernel.service::<dyn Subprocess>().expect("provided");
        assert!(Arc::ptr_eq(&provider, &service));
        kernel.unmount(&handle).await.expect("unmounted");
        assert!(kernel.service::<dyn Subprocess>().is_none());
    }
}
