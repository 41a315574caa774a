//! The host from outside, over file systems and processes in memory. Time is virtual throughout: a
//! timer runs out when, and only when, nothing else can happen.

mod cancelling;
mod dying;
mod ending;
mod fakes;
mod files;
mod mounting;
mod queries;
