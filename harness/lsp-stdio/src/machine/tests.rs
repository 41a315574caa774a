//! Every state of a query against everything that can happen to it, without a process.

mod cancelling;
mod dying;
mod handshake;
mod model;
mod rig;
mod serving;
mod talking;
