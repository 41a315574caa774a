//! The samples that are part of the binary. A test holds the list equal to the folder.

/// A sample: its name and its files as (path below its folder, text).
type Files = (&'static str, &'static [(&'static str, &'static str)]);

/// Every sample.
pub(super) const SAMPLES: &[Files] = &[];
