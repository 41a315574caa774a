//! The profiles of the runtime: ways to run an agent, each a composition of plugins and a front.
//!
//! [`Profile`] says which there are and what they are composed of; a [`Host`] is a mounted one, on
//! which sessions are opened. [`headless()`] runs one prompt, [`sdk::serve`] a client that speaks
//! JSON-RPC, [`acp::serve`] an editor that speaks the Agent Client Protocol. All of them work on
//! streams and callbacks that are handed in; environment, files of the command line and signals are
//! the caller's.

pub mod acp;
mod approval;
mod headless;
mod host;
mod lines;
mod profile;
pub mod sdk;
mod turn;

pub use headless::{ending, event_line, headless, opening, progress};
pub use host::{Host, HostOptions, Models, OpenError};
pub use profile::{Composition, Profile, composition_table, with_language_servers};
pub use turn::Answered;
