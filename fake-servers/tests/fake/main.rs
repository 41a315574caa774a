//! The real server, driven over pipes. Every action of a script has a test here.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod client;
mod control;
mod defaults;
mod life;
mod markers;
mod usage;
