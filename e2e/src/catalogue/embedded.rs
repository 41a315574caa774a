//! The entries that are part of the binary. A test holds the list equal to the folder.

/// (file name, text), one a server.
pub(super) const ENTRIES: &[(&str, &str)] = &[];
