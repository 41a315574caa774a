//! The model-facing file tools: `read`, `write`, `edit`, and the policy that a file is read before
//! it is written (RUN-8, RUN-9, RUN-10).
//!
//! The tools touch files through `dsh-fs` alone. What a tool has seen or written it tells on the
//! bus as `fs/observed`; what depends on that (workspace instructions, the policy here) listens.
//!
//! - `window`: which lines of a file are shown, pure: bytes in, lines out.
//! - `replace`: what an edit makes of a text, pure.
//! - `render`: what the model reads of a value.
//! - `present`: what a person reads.
//! - `failure`: codes and words of what went wrong.
//! - `files`: what the tools have in common: paths, absences, observations.
//! - `read`, `write`, `edit`: the tools.
//! - `guard`: what a policy tells the tools before they write.
//! - `policy`: the read-before-write policy.

mod args;
mod config;
mod edit;
mod failure;
mod files;
mod guard;
mod plugin;
mod policy;
mod present;
mod read;
mod render;
mod replace;
mod window;
mod write;

pub use config::{InvalidConfig, Key, MAX_LIMIT, ToolFsConfig};
pub use failure::code;
pub use guard::{Known, WriteGuard};
pub use plugin::ToolFsPlugin;
pub use policy::{ReadBeforeWriteConfig, ReadBeforeWritePlugin};
pub use render::{Line, ReadValue};
