//! The real server, driven over pipes. Every action of a script has a test here.

mod actions;
mod client;
mod control;
mod defaults;
mod life;
mod markers;
mod usage;
