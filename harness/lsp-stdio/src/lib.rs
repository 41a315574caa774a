//! Generic host that adapts configured stdio language servers to the seam.
