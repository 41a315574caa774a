//! The loop, driven by scripted models.

mod append_only;
mod cancel;
mod model;
mod plugin;
mod pre_step;
mod store;
mod support;
mod tools;
mod turns;
