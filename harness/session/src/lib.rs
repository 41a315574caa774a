//! The session: its header, the event log, what the model sees of it, and the durable store.
//!
//! A [`Session`] is a header and a [`Log`]. The log is append-only and the one source of what the
//! model sees (RUN-11): messages are made from its visible events, compaction hides events behind a
//! summary without taking them out (RUN-16), and each request that was sent can be made again from
//! it, byte for byte. [`SessionStore`] keeps a session in a file that a crash does not spoil.
//!
//! ```
//! use dsh_session::{ContentBlock, EventBody, MessageSource, Session, SessionHeader};
//!
//! let session = Session::new(SessionHeader { id: "s1".to_owned(), cwd: None });
//! session.append(EventBody::UserMessage {
//!     source: MessageSource::prompt(),
//!     content: vec![ContentBlock::text("hello")],
//! })?;
//! assert_eq!(session.read(|log| log.messages().len()), 1);
//! # Ok::<(), dsh_session::AppendError>(())
//! ```

mod content;
mod event;
mod header;
mod limit;
mod log;
mod order;
mod request;
mod session;
mod store;
mod view;

#[cfg(test)]
mod tests;

pub use content::{ContentBlock, ContextMessage, MessageSource, ToolCall, ToolSchema};
pub use event::{AssistantMessage, Ending, Event, EventBody, LoggedResult, Usage, present};
pub use header::SessionHeader;
pub use limit::{MAX_DEPTH, MAX_LINE, is_loggable, is_shallow};
pub use log::{AppendError, INTERRUPTED, Log, RebuildError};
pub use request::{Message, ModelRequest};
pub use session::{ForkError, LogSubscription, Session};
pub use store::{FORMAT, SessionStore, StoreError};
