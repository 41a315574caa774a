//! The execution world: which machine, container or sandbox a service acts in.

use std::fmt;
use std::sync::Arc;

/// The identity of an execution world. Paths and processes mean the same thing only within one.
///
/// A language server must see the files that the host reads for it, so the file system and the
/// subprocess service of a host must name the same world (HST-9).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionWorld(Arc<str>);

impl ExecutionWorld {
    /// The world of this process: its own file system and process table.
    pub fn local() -> Self {
        Self::named("local")
    }

    /// A world known by `name`; equal names are the same world.
    pub fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

impl fmt::Display for ExecutionWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
