//! The tests that need more than one module.

mod model;
mod world;
