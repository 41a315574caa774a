//! The command line, as whoever types it meets it: statuses, both streams, files left, and nothing
//! left running.

#![cfg(unix)]

mod check;
mod interruption;
mod probes;
mod query;
mod reference;
mod support;
