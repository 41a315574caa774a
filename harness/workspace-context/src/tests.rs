//! The tests that need more than one module.

mod files;
mod loop_side;
mod model;
mod rig;
mod tight;
mod tools_side;
mod world;
