//! The tool as a plugin.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::{PromptSection, SystemPrompt};
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};
use dsh_lsp::LspService;
use dsh_tools::ToolRegistry;

use crate::config::ToolLspConfig;
use crate::prompt::{NAME, SECTION, SECTION_ORDER};
use crate::tool::LspTool;

/// Registers the `lsp` tool and its section of the system prompt. It needs three services and no
/// other (TOOL-12): tools, the seam, and the system prompt.
#[derive(Clone, Debug, Default)]
pub struct ToolLspPlugin {
    config: ToolLspConfig,
}

impl ToolLspPlugin {
    /// The plugin with its configuration, whose ranges are checked when it starts (TOOL-9).
    pub fn new(config: ToolLspConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Plugin for ToolLspPlugin {
    fn name(&self) -> &'static str {
        "dsh-tool-lsp"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<ToolRegistry>(),
            ServiceKey::of::<dyn LspService>(),
            ServiceKey::of::<SystemPrompt>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        self.config
            .validate()
            .map_err(|error| PluginError::with_code("LSP_CONFIG_INVALID", error))?;
        let tool = LspTool::new(ctx.service::<dyn LspService>()?, self.config);
        let handle = ctx.service::<ToolRegistry>()?.register(Arc::new(tool))?;
        ctx.effect("lsp tool", move || handle.release());
        let section = ctx.service::<SystemPrompt>()?.add_section(PromptSection {
            name: NAME.to_owned(),
            order: SECTION_ORDER,
            text: SECTION.to_owned(),
        });
        ctx.effect("lsp prompt section", move || section.release());
        Ok(())
    }
}
