//! The event log, its JSON Lines form, the byte tap and the strict reader of the wire.
