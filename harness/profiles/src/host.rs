//! A mounted profile, and the sessions that are opened on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_harness::agent::{Agent, LoopOptions, Model};
use dsh_harness::fs::{FileKind, FileSystem, FsError};
use dsh_harness::kernel::{Cancel, DisposeErrors};
use dsh_harness::session::{Session, SessionHeader, SessionStore, StoreError};
use dsh_harness::tools::{Card, ToolCall};
use dsh_harness::{Deployment, MountError, Runtime, RuntimeBuilder};

use crate::Profile;
use crate::approval::{Approvers, Front};
use crate::lines::brief;

/// The ending of the names of stored sessions.
const EXTENSION: &str = "jsonl";

/// The longest id of a session, in bytes: it has to fit a file name.
const LONGEST_ID: usize = 128;

/// Gives each session its model.
pub trait Models: Send + Sync + 'static {
    /// The model's name, for people.
    fn name(&self) -> &str;

    /// A model for one session; an error says in words why there is none.
    fn model(&self) -> Result<Arc<dyn Model>, String>;
}

/// What a profile is mounted with.
pub struct HostOptions {
    /// Which one.
    pub profile: Profile,
    /// The rows to mount.
    pub deployment: Deployment,
    /// What the runtime is made with besides: where its processes come from, for instance.
    pub runtime: RuntimeBuilder,
    /// Who answers.
    pub models: Arc<dyn Models>,
    /// The folder that keeps the sessions which are opened by id; it must exist. None keeps them in
    /// memory alone.
    pub folder: Option<PathBuf>,
    /// What the ids of new sessions begin with. In a folder, one that no run before had.
    pub prefix: String,
    /// The limits of the loops.
    pub limits: LoopOptions,
}

/// A mounted profile.
pub struct Host {
    runtime: Runtime,
    profile: Profile,
    models: Arc<dyn Models>,
    folder: Option<PathBuf>,
    prefix: String,
    limits: LoopOptions,
    next: AtomicU64,
    approvers: Arc<Approvers>,
}

/// Why a session is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A working directory that means something else everywhere.
    #[error("the working directory {0:?} is not absolute; give the whole path")]
    RelativeDirectory(String),
    /// A working directory that cannot be worked in.
    #[error("the working directory {cwd:?} cannot be used: {problem}")]
    Directory {
        /// The directory, its end cut off where it is long.
        cwd: String,
        /// What is the matter, and the way out.
        problem: String,
    },
    /// Sessions are not kept here.
    #[error("this run keeps no sessions; start it with --sessions FOLDER to go on with one")]
    NotKept,
    /// An id that no session of ours has.
    #[error("{0:?} is no id of a session; ids have letters, digits, `-`, `_` and `.`")]
    BadId(String),
    /// The file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no model.
    #[error("{0}")]
    Model(String),
}

impl OpenError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RelativeDirectory(_) => "CWD_NOT_ABSOLUTE",
            Self::Directory { .. } => "CWD_UNUSABLE",
            Self::NotKept => "SESSIONS_NOT_KEPT",
            Self::BadId(_) => "SESSION_ID_INVALID",
            Self::Store(_) => "SESSION_STORE",
            Self::Model(_) => "MODEL_UNAVAILABLE",
        }
    }
}

impl Host {
    /// Mounts a profile. After an error, and if the cancellation is given, nothing is left of it.
    pub async fn mount(options: HostOptions, cancel: &Cancel) -> Result<Self, MountError> {
        let HostOptions {
            profile,
            deployment,
            runtime,
            models,
            folder,
            prefix,
            limits,
        } = options;
        let approvers = Arc::new(Approvers::default());
        let runtime = runtime
            .deployment(deployment)
            .timeout_policy(profile.has_base())
            .plugin(Arc::new(Front::new(
                profile.front(),
                Arc::clone(&approvers),
            )))
            .mount(cancel)
            .await?;
        Ok(Self {
            runtime,
            profile,
            models,
            folder,
            prefix,
            limits,
            next: AtomicU64::new(1),
            approvers,
        })
    }

    /// The runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Which profile it is.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The name of the model, for people.
    pub fn model_name(&self) -> &str {
        self.models.name()
    }

    /// Whether sessions can be gone on with by id.
    pub fn keeps_sessions(&self) -> bool {
        self.folder.is_some()
    }

    /// Begins a session, in the folder if there is one.
    pub async fn open(&self, cwd: Option<&str>) -> Result<Agent, OpenError> {
        let header = self.header(cwd).await?;
        let session = match &self.folder {
            None => Session::new(header),
            Some(folder) => SessionStore::create(file(folder, &header.id), header).await?,
        };
        self.agent(session)
    }

    /// Begins a session that is kept in a new file.
    pub async fn open_in(&self, path: &Path, cwd: Option<&str>) -> Result<Agent, OpenError> {
        let header = self.header(cwd).await?;
        self.agent(SessionStore::create(path, header).await?)
    }

    /// Goes on with a session of a file.
    pub async fn resume_in(&self, path: &Path) -> Result<Agent, OpenError> {
        let session = SessionStore::open(path).await?;
        if let Some(cwd) = &session.header().cwd {
            self.usable(cwd).await?;
        }
        self.agent(session)
    }

    /// Goes on with a session of the folder.
    pub async fn resume(&self, id: &str) -> Result<Agent, OpenError> {
        let Some(folder) = &self.folder else {
            return Err(OpenError::NotKept);
        };
        if !is_id(id) {
            return Err(OpenError::BadId(id.chars().take(LONGEST_ID).collect()));
        }
        self.resume_in(&file(folder, id)).await
    }

    async fn header(&self, cwd: Option<&str>) -> Result<SessionHeader, OpenError> {
        if let Some(cwd) = cwd {
            if !Path::new(cwd).is_absolute() {
                return Err(OpenError::RelativeDirectory(brief(cwd)));
            }
            self.usable(cwd).await?;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(SessionHeader {
            id: format!("{}-{number}", self.prefix),
            cwd: cwd.map(str::to_owned),
        })
    }

    /// Whether a session can work in a directory. Without a file system nobody looks into it.
    async fn usable(&self, cwd: &str) -> Result<(), OpenError> {
        let Some(files) = self.runtime.kernel().service::<dyn FileSystem>() else {
            return Ok(());
        };
        let cancel = Cancel::new();
        let found = match files.resolve(None, cwd, &cancel).await {
            Ok(target) => files.stat(&target, &cancel).await,
            Err(error) => Err(error),
        };
        let problem = match found {
            Ok(found) if found.kind == FileKind::Directory => return Ok(()),
            Ok(_) => "it is no directory; name one".to_owned(),
            Err(FsError::Missing { .. }) => {
                "it does not exist; make it, or name another".to_owned()
            }
            Err(error) => format!("{error}; name another"),
        };
        Err(OpenError::Directory {
            cwd: brief(cwd),
            problem,
        })
    }

    fn agent(&self, session: Session) -> Result<Agent, OpenError> {
        let model = self.models.model().map_err(OpenError::Model)?;
        Ok(self
            .runtime
            .agents()
            .open(session, model, self.limits.clone()))
    }

    pub(crate) fn approvers(&self) -> &Approvers {
        &self.approvers
    }

    /// How a call is shown to a person.
    pub fn card(&self, call: &ToolCall) -> Option<Card> {
        self.runtime.tools().present_call(call)
    }

    /// Unloads everything; returns when nothing is left. Agents are closed before.
    pub async fn dispose(&self) -> Result<(), DisposeErrors> {
        self.runtime.dispose().await
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.{EXTENSION}"))
}

/// Whether an id names a file of the folder and none elsewhere.
fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= LONGEST_ID
        && !id.starts_with('.')
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_file_of_the_folder_and_none_elsewhere() {
        for id in ["session-1", "20260101T000000-2", "a.b_c"] {
            assert!(is_id(id), "{id}");
        }
        let long = "a".repeat(LONGEST_ID + 1);
        for id in [
            "", ".", "..", ".a", "a/b", "../a", "a\\b", "a\0", "é", &long,
        ] {
            assert!(!is_id(id), "{id}");
        }
    }
}
