//! Deployment file to mounted runtime, and the facade every other crate uses.
