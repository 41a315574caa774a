//! Scriptable stdio language server that can misbehave in every way a real one does.
//!
//! Without a script it behaves well. A script (YAML, JSON, or [`FakeServer`] in Rust) changes what
//! it does for any message, at any time, down to the bytes. It checks what its client sends with a
//! strict reader of its own and reports everything to a transcript, or to a [`Control`], which can
//! also choose when it goes on.
//!
//! It knows no client: it is a program like any other language server, and this crate a way to
//! write down how it should behave and the command that starts it. See the README for the script
//! and for examples.

mod args;
mod builder;
mod control;
mod engine;
mod markers;
mod order;
mod script;
#[cfg(unix)]
mod server;
mod spelling;
mod uri;

pub use args::run_from_args;
pub use builder::{
    FakeCommand, FakeServer, capabilities, close, coalesce, cut_at, cut_at_each_place,
    cut_at_random, cut_into, delay_ms, each_byte, exit, hold, ignore, kill, note, notify,
    notify_times, only, raw, raw_bytes, reply, reply_error, reply_raw, request, request_and_wait,
    set, spawn_helper, spell, stderr, stderr_flood, stop_reading, trap_sigterm,
};
pub use control::{Control, ControlError};
pub use script::{
    Action, Base, Base64Bytes, Case, Chunk, Flood, Helper, Length, Note, Notify, Order, Payload,
    RandomCuts, Repeated, Request, Rule, Script, ScriptError, Signal, Spelling, Stderr, Stream,
    Trap, contains, schema,
};

/// The server's process on a platform whose pipes it cannot use.
#[cfg(not(unix))]
mod server {
    use std::ffi::OsString;
    use std::io;
    use std::path::PathBuf;

    use crate::script::Script;

    #[derive(Debug, Default)]
    #[expect(dead_code, reason = "the platform has no server to use them")]
    pub(crate) struct Options {
        pub(crate) script: Script,
        pub(crate) control: Option<String>,
        pub(crate) transcript: Option<PathBuf>,
        pub(crate) process: Option<u32>,
        pub(crate) counter: Option<PathBuf>,
        pub(crate) prefix: Vec<OsString>,
    }

    #[expect(dead_code, reason = "the platform has no helper to use them")]
    pub(crate) struct HelperOptions {
        pub(crate) deaf: bool,
        pub(crate) new_session: bool,
        pub(crate) orphan: bool,
        pub(crate) life_ms: u64,
        pub(crate) control: Option<String>,
    }

    fn unsupported() -> io::Error {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "the fake server runs on Unix only so far",
        )
    }

    pub(crate) fn serve(_: Options) -> io::Result<i32> {
        Err(unsupported())
    }

    pub(crate) fn live_as_helper(_: &HelperOptions, _: &[OsString]) -> io::Result<i32> {
        Err(unsupported())
    }
}

/// The examples of the README are compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
