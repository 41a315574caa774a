//! The plugin that provides the registry.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};

use crate::ToolRegistry;

/// Provides [`ToolRegistry`]; part of the base, without a row of its own.
#[derive(Debug, Default)]
pub struct ToolsPlugin;

#[async_trait]
impl Plugin for ToolsPlugin {
    fn name(&self) -> &'static str {
        "dsh-tools"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<ToolRegistry>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide(Arc::new(ToolRegistry::new(ctx.events().clone())))
    }
}
