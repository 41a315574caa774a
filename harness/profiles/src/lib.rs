//! The profiles of the runtime: ways to run an agent, each a composition of plugins and a front.
