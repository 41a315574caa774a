//! The file tools as a model meets them: through the registry, on files of this machine.

#![cfg(unix)]

mod arguments;
mod change;
mod policy;
mod provider;
mod read;
mod support;
