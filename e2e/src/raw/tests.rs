//! What follows from what was seen, way by way.
