//! Catalogue of real servers, sample workspaces, probes.

pub mod catalogue;
mod data;
pub mod install;
pub mod samples;
