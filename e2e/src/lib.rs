//! Catalogue of real servers, sample workspaces, probes.
