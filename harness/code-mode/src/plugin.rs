//! The tool as a plugin.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{PreStepped, SystemPrompt};
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};
use dsh_tools::ToolRegistry;

use crate::code;
use crate::config::CodeModeConfig;
use crate::custody::Custody;
use crate::prompt::Section;
use crate::tool::RunCode;

/// How long unloading waits for scripts that are in the middle of a built-in function: as long as the
/// host gives a server by default.
const PATIENCE: Duration = Duration::from_secs(5);

/// Registers the `run_code` tool and its section of the system prompt. Needs the tools and the
/// system prompt. Unloading stops scripts that run and joins their threads.
#[derive(Clone, Debug, Default)]
pub struct CodeModePlugin {
    config: CodeModeConfig,
}

impl CodeModePlugin {
    /// The plugin with its configuration, whose ranges are checked when it starts.
    pub fn new(config: CodeModeConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Plugin for CodeModePlugin {
    fn name(&self) -> &'static str {
        "dsh-code-mode"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<ToolRegistry>(),
            ServiceKey::of::<SystemPrompt>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        self.config
            .validate()
            .map_err(|error| PluginError::with_code(code::CODE_MODE_CONFIG_INVALID, error))?;
        let registry = ctx.service::<ToolRegistry>()?;
        let prompt = ctx.service::<SystemPrompt>()?;
        let custody = Custody::default();
        let threads = custody.clone();
        ctx.effect_async("scripts", move || {
            Box::pin(async move {
                threads.close(PATIENCE).await.map_err(|stuck| {
                    PluginError::with_code(
                        code::CODE_MODE_STUCK,
                        format!(
                            "{stuck} scripts are in the middle of a built-in function and do not end; \
                             their threads go on until it returns"
                        ),
                    )
                })
            })
        });
        let tool = RunCode::new(ToolRegistry::clone(&registry), self.config, custody);
        let handle = registry.register(Arc::new(tool))?;
        ctx.effect("run_code tool", move || handle.release());
        let section = Arc::new(Section::new(
            SystemPrompt::clone(&prompt),
            ToolRegistry::clone(&registry),
        ));
        let own = Arc::clone(&section);
        ctx.effect("run_code prompt section", move || own.release());
        // Tools come and go between steps; the section is right when the next request is made.
        ctx.on::<PreStepped>(move |_| section.refresh());
        Ok(())
    }
}
