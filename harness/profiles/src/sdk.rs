//! The `sdk` profiles: JSON-RPC 2.0 over two streams, one message a line.
//!
//! | method | params → result |
//! |---|---|
//! | `open` | `{cwd?, resume?, deltas?, approvals?}` → `{session, cwd, resumed, events}` |
//! | `prompt` | `{session, text}` → `{outcome, answer}`, when its turn has ended |
//! | `cancel` | `{session}` → `{cancelled}`: how many prompts, the running one and those that wait |
//! | `events` | `{session, after?}` → `{events}`: the log behind the event `after` |
//! | `close` | `{session}` → `{}`, when its agent has ended |
//!
//! Notifications to the client: `event` `{session, event}` for every event that is logged, and where
//! `deltas` was asked for `delta` `{session, turn, step, attempt, …}`. A request to the client, where
//! `approvals` was asked for: `approve` `{session, call, question}` → `{granted, reason?}`.
//!
//! Sessions run side by side; the prompts of one wait for each other. The end of the input disposes
//! everything. Errors have the codes of JSON-RPC, and a stable code in `data.code`.

mod approve;
mod conversation;
mod protocol;
mod server;

pub use protocol::METHODS;
pub use server::{Limits, ServeError, serve};
