//! The event log, its JSON Lines form, the byte tap and the strict reader of the wire.
//!
//! Everything that happens in a run is one ordered log of [`Event`]s: frames in both directions
//! with their bytes as written, process starts and ends, stderr, calls and results, file changes.
//! Expectations, monitors, latencies and pictures are functions of that log, wherever it came from.
//!
//! - [`Recorder`] collects events and lets others wait for them.
//! - [`Tap`] turns the bytes of one pipe into events, by way of the [`strict`] reader, which shares
//!   no code with any client or server it may have to judge.
//! - [`jsonl`] is the form in a file.
//! - [`View`] answers the questions judges ask.
//!
//! Nothing here knows a harness, starts a process or moves bytes. A driver that speaks raw bytes
//! to a server, without any host between, records in the same way: it emits
//! [`EventBody::ProcessStarted`], gives what it writes to a [`Tap`] of [`Direction::ToServer`] and
//! what it reads to one of [`Direction::ToClient`], so that the same judges see it.
//!
//! ```
//! use dsh_transcript::{Direction, Recorder, Tap, View};
//!
//! let recorder = Recorder::new();
//! let mut tap = Tap::new(recorder.clone(), 1, Direction::ToServer);
//! // Cuts do not matter.
//! tap.bytes(b"Content-Length: 33\r\n\r\n{\"jsonrpc\":\"2.0\",");
//! tap.bytes(b"\"method\":\"exit\"}");
//! tap.end();
//! let events = recorder.events();
//! assert_eq!(View(&events).wire(1), ["exit"]);
//! ```

mod clock;
mod envelope;
mod event;
pub mod jsonl;
mod raw;
mod recorder;
pub mod strict;
mod surrogates;
mod tap;
mod view;

pub use clock::monotonic_us;
pub use envelope::{Envelope, Id, short_name};
pub use event::{Direction, Event, EventBody, Frame, Member, Termination};
pub use raw::Raw;
pub use recorder::{Bounds, Recorder, Subscription};
pub use strict::{Deviation, Limits, Malformed, StrictReader};
pub use tap::{Splitter, Tap, violation};
pub use view::{Exchange, View};

#[cfg(test)]
mod tests;
