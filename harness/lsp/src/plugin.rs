//! The seam as a plugin.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};

use crate::{LspRegistry, LspService};

/// Provides `dyn LspService`. It has no configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct LspPlugin;

impl LspPlugin {
    /// The plugin.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Plugin for LspPlugin {
    fn name(&self) -> &'static str {
        "dsh-lsp"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn LspService>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide::<dyn LspService>(Arc::new(LspRegistry::new()))
    }
}
