//! The host as a plugin (CFG-2…7, HST-9, DIS-1).

use std::sync::Arc;

use async_trait::async_trait;
use dsh_fs::FileSystem;
use dsh_kernel::{Cancel, Context, Plugin, PluginError, ServiceKey};
use dsh_lsp::{LspError, LspService, Registration};
use dsh_subprocess::Subprocess;
use futures::FutureExt as _;
use futures::future::join_all;

use crate::config::LspStdioConfig;
use crate::provider::StdioProvider;

/// Registers a provider for each server of its configuration.
#[derive(Clone, Debug)]
pub struct LspStdioPlugin {
    config: LspStdioConfig,
}

impl LspStdioPlugin {
    /// The plugin; the configuration is judged when it starts.
    pub fn new(config: LspStdioConfig) -> Self {
        Self { config }
    }

    /// Finds every executable, side by side, and waits for all lookups also when one fails or the
    /// plugin is being unloaded (CFG-4, CFG-6). The first failure in the order of ids counts.
    async fn load(
        &self,
        files: &Arc<dyn FileSystem>,
        processes: &Arc<dyn Subprocess>,
        cancel: &Cancel,
    ) -> Result<Vec<Arc<StdioProvider>>, LspError> {
        self.config.validate()?;
        let lookups = self.config.servers.iter().map(|(id, config)| {
            let (files, processes) = (Arc::clone(files), Arc::clone(processes));
            StdioProvider::load(id, config.clone(), files, processes, cancel)
        });
        let providers = join_all(lookups).await;
        cancel.check()?;
        providers.into_iter().collect()
    }
}

#[async_trait]
impl Plugin for LspStdioPlugin {
    fn name(&self) -> &'static str {
        "dsh-lsp-stdio"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<dyn FileSystem>(),
            ServiceKey::of::<dyn Subprocess>(),
            ServiceKey::of::<dyn LspService>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let files = ctx.service::<dyn FileSystem>()?;
        let processes = ctx.service::<dyn Subprocess>()?;
        let seam = ctx.service::<dyn LspService>()?;
        let providers = self
            .load(&files, &processes, ctx.cancel())
            .await
            .map_err(|error| failed(&error))?;
        let registrations = register(&*seam, &providers).map_err(|error| failed(&error))?;
        ctx.effect_async("language servers", move || {
            async move { dispose(registrations, &providers).await }.boxed()
        });
        Ok(())
    }
}

/// All of them or none: an error drops, and so releases, the registrations before it (CFG-5).
fn register(
    seam: &dyn LspService,
    providers: &[Arc<StdioProvider>],
) -> Result<Vec<Registration>, LspError> {
    providers
        .iter()
        .map(|provider| seam.register_provider(Arc::clone(provider) as _))
        .collect()
}

/// The routes go first (DIS-1), then all servers side by side; what fails is reported together
/// (DIS-5).
async fn dispose(
    registrations: Vec<Registration>,
    providers: &[Arc<StdioProvider>],
) -> Result<(), PluginError> {
    drop(registrations);
    let ends = join_all(providers.iter().map(|provider| provider.dispose())).await;
    let failures: Vec<String> = ends
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(PluginError::new(failures.join("\n")))
    }
}

fn failed(error: &LspError) -> PluginError {
    PluginError::with_code(error.code(), error)
}
