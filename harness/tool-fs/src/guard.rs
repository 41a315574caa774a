//! What a policy tells the tools before they write.

use std::path::Path;

use dsh_fs::FsVersion;

/// What a session knows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it has neither read nor written it.
    Nothing,
    /// That there was no file.
    Absent,
    /// Its content in this version.
    Version(FsVersion),
}

/// A service that holds `write` and `edit` to what the session knows. While nobody provides it, the
/// tools write whatever is there.
///
/// The tools hand what is known on to the file system as what the write expects, so that a change
/// is noticed up to the moment before the file is replaced.
pub trait WriteGuard: Send + Sync + 'static {
    /// What the session knows of the file with this [identity](dsh_fs::FsObserved::identity).
    fn known(&self, session: Option<&str>, identity: &Path) -> Known;
}
