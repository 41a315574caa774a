//! The commands, one module each.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod deployment;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod servers;
mod subject;
pub(crate) mod subject_worker;
#[cfg(unix)]
pub(crate) mod tamper;
#[cfg(unix)]
pub(crate) mod tap;
