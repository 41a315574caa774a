//! What an event may be, so that it can be written, and read again.

use serde_json::Value;

use crate::EventBody;

/// How deep arrays and objects may nest in a value that is logged. A JSON reader has a limit of its
/// own, and a log that cannot be read again is lost.
pub const MAX_DEPTH: usize = 64;

/// How long a line of the store may be, in bytes. An event that would not fit is refused.
pub const MAX_LINE: usize = 64 << 20;

/// Whether arrays and objects nest no deeper than [`MAX_DEPTH`] in the value.
pub fn is_shallow(value: &Value) -> bool {
    fits(value, MAX_DEPTH)
}

fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|item| fits(item, levels - 1)),
        _ => true,
    }
}

pub(crate) fn check(_body: &EventBody) -> Result<(), String> {
    Ok(())
}
