//! The tools as a plugin.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_fs::FileSystem;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};
use dsh_tools::{Tool, ToolRegistry};

use crate::config::ToolFsConfig;
use crate::edit::EditTool;
use crate::files::Files;
use crate::guard::WriteGuard;
use crate::read::ReadTool;
use crate::write::WriteTool;

/// Registers `read`, `write` and `edit`. It needs tools and files; a [`WriteGuard`] is heeded while
/// somebody provides one.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolFsPlugin {
    config: ToolFsConfig,
}

impl ToolFsPlugin {
    /// The plugin with its configuration, whose ranges are checked when it starts.
    pub fn new(config: ToolFsConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Plugin for ToolFsPlugin {
    fn name(&self) -> &'static str {
        "dsh-tool-fs"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<ToolRegistry>(),
            ServiceKey::of::<dyn FileSystem>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        self.config
            .validate()
            .map_err(|error| PluginError::with_code("TOOL_FS_CONFIG_INVALID", error))?;
        let files = Files {
            fs: ctx.service::<dyn FileSystem>()?,
            events: ctx.events().clone(),
            guard: ctx.watch::<dyn WriteGuard>(),
        };
        let registry = ctx.service::<ToolRegistry>()?;
        let tools: [Arc<dyn Tool>; 3] = [
            Arc::new(ReadTool::new(files.clone(), self.config)),
            Arc::new(WriteTool::new(files.clone())),
            Arc::new(EditTool::new(files, self.config.max_edit_bytes)),
        ];
        for tool in tools {
            let handle = registry.register(tool)?;
            ctx.effect("file tool", move || handle.release());
        }
        Ok(())
    }
}
