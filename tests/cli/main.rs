//! The command line, as whoever types it meets it: statuses, both streams, files left, and nothing
//! left running.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agent;
mod all;
mod audit;
mod check;
mod ends;
mod found;
mod interruption;
mod limits;
mod own;
mod pipes;
mod probes;
mod query;
mod raw;
mod reference;
mod refused;
mod remedy;
mod report;
mod run;
mod support;
mod tamper;
mod tap;
mod truth;
