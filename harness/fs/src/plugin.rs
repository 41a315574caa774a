//! The plugin that provides the file system service.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};

use crate::local::LocalFileSystem;
use crate::service::FileSystem;

/// Provides `dyn FileSystem`: a [`LocalFileSystem`] of its own for each start, whose reads are
/// waited for when it is unloaded, or one that was handed in.
#[derive(Default)]
pub struct FsLocalPlugin {
    given: Option<Arc<dyn FileSystem>>,
}

impl FsLocalPlugin {
    /// Provides the files of this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides `given` in their place; its life is the caller's concern.
    pub fn providing(given: Arc<dyn FileSystem>) -> Self {
        Self { given: Some(given) }
    }
}

#[async_trait]
impl Plugin for FsLocalPlugin {
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "the trait lends the name from itself"
    )]
    fn name(&self) -> &str {
        "dsh-fs-local"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn FileSystem>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        if let Some(given) = &self.given {
            return ctx.provide(Arc::clone(given));
        }
        let local = Arc::new(LocalFileSystem::new());
        let closing = Arc::clone(&local);
        ctx.effect_async("reads in flight", move || {
            Box::pin(async move {
                closing.close().await;
                Ok(())
            })
        });
        ctx.provide::<dyn FileSystem>(local)
    }
}

#[cfg(test)]
mod tests {
    use dsh_kernel::{Cancel, CancelReason, ExecutionWorld, Kernel};

    use super::*;
    use crate::{Workspace, WorkspaceError};

    /// RUN-1, RUN-2: what is provided is withdrawn and closed, and each start has its own.
    #[tokio::test]
    async fn the_service_lives_as_long_as_the_plugin() {
        let kernel = Kernel::new();
        let plugin: Arc<dyn Plugin> = Arc::new(FsLocalPlugin::new());
        let handle = kernel.mount(Arc::clone(&plugin)).await.expect("mounted");
        let root = std::env::temp_dir().to_str().expect("UTF-8").to_owned();
        let first = kernel.service::<dyn FileSystem>().expect("provided");
        assert_eq!(first.world(), &ExecutionWorld::local());
        assert!(first.workspace(&root, &Cancel::new()).await.is_ok());

        kernel.unmount(&handle).await.expect("unmounted");
        assert!(kernel.service::<dyn FileSystem>().is_none());
        let closed: Result<Workspace, _> = first.workspace(&root, &Cancel::new()).await;
        assert_eq!(
            closed,
            Err(WorkspaceError::Cancelled(CancelReason::Disposed))
        );

        kernel.mount(plugin).await.expect("mounted again");
        let second = kernel.service::<dyn FileSystem>().expect("provided");
        assert!(second.workspace(&root, &Cancel::new()).await.is_ok());
        kernel.dispose().await.expect("disposed");
    }

    #[tokio::test]
    async fn a_given_service_is_provided_as_it_is() {
        let kernel = Kernel::new();
        let given: Arc<dyn FileSystem> = Arc::new(LocalFileSystem::new());
        kernel
            .mount(Arc::new(FsLocalPlugin::providing(Arc::clone(&given))))
            .await
            .expect("mounted");
        let provided = kernel.service::<dyn FileSystem>().expect("provided");
        assert!(Arc::ptr_eq(&given, &provided));
        kernel.dispose().await.expect("disposed");
    }
}
