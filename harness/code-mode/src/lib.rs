//! The run_code tool: scripts that call the mounted tools.
