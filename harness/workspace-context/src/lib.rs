//! Workspace instructions: the `AGENTS.md` files of a session's workspace, shown to the model once
//! and told of again when they change.
//!
//! A session's baseline is the user's own file and those of each directory from the project's root
//! to the working directory; it enters the first request (INS-1, INS-2). Files in deeper directories
//! follow when a file tool reaches them, and every touch tells of what has changed since (INS-5).
//! Nobody watches the disk, and nothing in the files is interpreted (INS-24).
//!
//! What is loaded is said by the typed sources of the messages that the model can still see
//! ([`InstructionSource`]), and by nothing else (INS-7).
//!
//! Pure: `layout` (which files may count), `state` (what is loaded), `reconcile` (what to tell),
//! `render` (in which words, within which budget), `escape`, `round` (one look at the files),
//! `tracker` (what a session remembers between two looks). Thin: `load` (probes and reads),
//! `boundary` (the loop's side), `plugin` (the tools' side).

mod boundary;
mod config;
mod digest;
mod escape;
mod layout;
mod load;
mod observed;
mod passed_over;
mod plugin;
mod reconcile;
mod render;
mod round;
mod sessions;
mod source;
mod state;
mod tracker;

#[cfg(test)]
mod tests;

pub use config::{HomeVariables, InvalidConfig, WorkspaceContextConfig};
pub use passed_over::{InstructionsPassedOver, PassedOver};
pub use plugin::WorkspaceContextPlugin;
pub use source::{Action, Change, InstructionSource, KIND, Omission};
