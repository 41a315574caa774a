//! The profiles from outside, each over the streams or callbacks that a caller hands in.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod acp;
mod composition;
mod headless;
mod sdk;
mod support;
