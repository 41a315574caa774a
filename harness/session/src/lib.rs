//! The session: its header, and the event log that grows from it.
