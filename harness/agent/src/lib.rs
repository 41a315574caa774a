//! The agent: system prompt assembly.
