//! Catalogue of real servers, sample workspaces, probes.

pub mod catalogue;
mod data;
mod evidence;
pub mod install;
mod judge;
mod readiness;
pub mod samples;
mod shape;
