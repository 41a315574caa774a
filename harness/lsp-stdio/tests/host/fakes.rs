//! A file system, a subprocess service and language servers that a test plays itself.

mod control;
mod files;
mod processes;
mod server;

use std::sync::Arc;
use std::time::Duration;

use dsh_kernel::Cancel;
use dsh_lsp::{LspError, LspProvider, Operation, Position, ProviderQuery, QueryResult};
use dsh_lsp_stdio::{DisposeError, ServerConfig, StdioProvider};

pub(crate) use files::FakeFiles;
pub(crate) use processes::FakeProcesses;
pub(crate) use server::Server;

pub(crate) const SHUTDOWN: Duration = Duration::from_secs(5);
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// A provider of one server over the fakes.
pub(crate) struct Host {
    pub(crate) files: Arc<FakeFiles>,
    pub(crate) processes: Arc<FakeProcesses>,
    pub(crate) provider: Arc<StdioProvider>,
}

pub(crate) fn fakes() -> (Arc<FakeFiles>, Arc<FakeProcesses>) {
    let files = FakeFiles::new();
    files.link("/w", "/w");
    files.write("/w/a.x", "text of a");
    (Arc::new(files), processes_of("test"))
}

pub(crate) fn processes_of(world: &str) -> Arc<FakeProcesses> {
    Arc::new(FakeProcesses::new(world))
}

pub(crate) fn config() -> ServerConfig {
    let mut config = ServerConfig::new("x-server", [(".x", "xlang")]);
    config.args = vec!["--stdio".to_owned()];
    config
}

pub(crate) async fn host() -> Host {
    host_of(config()).await
}

pub(crate) async fn host_of(config: ServerConfig) -> Host {
    let (files, processes) = fakes();
    let provider = StdioProvider::new(
        "x",
        config,
        Arc::clone(&files) as _,
        Arc::clone(&processes) as _,
    )
    .await
    .expect("the entry is right");
    Host {
        files,
        processes,
        provider,
    }
}

pub(crate) fn query_in(workspace_root: &str, file_path: &str) -> ProviderQuery {
    ProviderQuery {
        operation: Operation::Hover,
        file_path: file_path.to_owned(),
        position: Position {
            line: 0,
            character: 1,
        },
        workspace_root: workspace_root.to_owned(),
        language_id: "xlang".to_owned(),
    }
}

impl Host {
    /// A hover on `/w/a.x`: its contents, or the error.
    pub(crate) async fn hover(&self, cancel: &Cancel) -> Result<String, LspError> {
        self.hover_in("/w", "a.x", cancel).await
    }

    pub(crate) async fn hover_in(
        &self,
        workspace_root: &str,
        file_path: &str,
        cancel: &Cancel,
    ) -> Result<String, LspError> {
        let query = self
            .provider
            .query(query_in(workspace_root, file_path), cancel);
        match patiently("an answer", query).await? {
            QueryResult::Hover { hover } => Ok(hover.expect("it says something").contents),
            other @ QueryResult::Locations { .. } => panic!("unexpected {other:?}"),
        }
    }

    /// A hover that nobody cancels.
    pub(crate) async fn ask(&self) -> Result<String, LspError> {
        self.hover(&Cancel::new()).await
    }

    /// A server that has been greeted and has answered one hover.
    pub(crate) async fn warm(&self) -> Server {
        let play = async {
            let mut server = self.processes.next().await;
            server.greet().await;
            server.hover("warm").await;
            server
        };
        let (answer, server) = tokio::join!(self.ask(), play);
        assert_eq!(answer.as_deref(), Ok("warm"));
        server
    }

    pub(crate) async fn dispose(&self) -> Result<(), DisposeError> {
        patiently("the end of the disposal", self.provider.dispose()).await
    }

    /// Disposes, with this server obeying, and looks for what is left.
    pub(crate) async fn end(self, mut server: Server) {
        let (ended, ()) = tokio::join!(self.dispose(), server.obey());
        assert_eq!(ended, Ok(()));
        assert_eq!(server.signals(), [""; 0]);
        self.is_quiet();
    }

    /// Disposes without a server to obey.
    pub(crate) async fn end_alone(self) {
        assert_eq!(self.dispose().await, Ok(()));
        self.is_quiet();
    }

    pub(crate) fn is_quiet(&self) {
        assert_eq!(self.processes.alive(), 0);
        assert_eq!(self.provider.workspaces(), 0);
    }
}

/// What is still waited for when nothing else can happen never comes: virtual time then jumps to the
/// end of this patience at once.
pub(crate) async fn patiently<F: Future>(what: &str, wait: F) -> F::Output {
    tokio::time::timeout(Duration::from_hours(1), wait)
        .await
        .unwrap_or_else(|_| panic!("{what} never comes"))
}

/// Lets every task run as far as it can, without letting time pass.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
