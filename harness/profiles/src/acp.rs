//! The `acp` profile: an agent for editors that speak the Agent Client Protocol, version 1.
//!
//! | method | here |
//! |---|---|
//! | `initialize` | version, capabilities, name |
//! | `session/new` | begins a session in a directory; MCP servers are not used, which its `_meta` says |
//! | `session/load` | where sessions are kept: tells what was said, and goes on |
//! | `session/prompt` | one turn; text, thoughts, calls and results are told while it runs |
//! | `session/cancel` | ends it; its prompt is answered `cancelled` |
//! | `session/close` | ends the session |
//!
//! Where a call needs an approval, the editor is asked with `session/request_permission`.

mod approve;
mod conversation;
mod server;
mod translate;
mod transport;

pub use server::{ServeError, serve};
