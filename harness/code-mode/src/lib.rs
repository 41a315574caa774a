//! The `run_code` tool: scripts that call the mounted tools (RUN-15).
//!
//! A script is the body of an async JavaScript function. It finds each other tool as an async
//! function of `tools`, which takes the tool's arguments and returns its canonical value, or throws
//! an Error with the failure's code and message; and it finds `console`. Beside the language there is
//! nothing else.
//!
//! - The interpreter runs on a thread of its own, with a limit of time, of memory and of stack.
//!   Threads are owned by the plugin and joined, at the latest when it is unloaded. A script that
//!   fills its memory ends by that, be it in one expression or in a chain of promises without an end.
//! - What no limit stops at once is a single built-in function at work on what it was given: it is
//!   not asked whether it may go on until it calls code of the script's or returns. Regular
//!   expressions are asked, and so is all that calls back, `sort` with a comparison for instance.
//!   What allocates ends at the limit of memory: `repeat`, `fill`, `concat`. What does neither may
//!   take long: a search in a long string (`indexOf`, `split`, `replaceAll`), arithmetic with huge
//!   integers, a method of arrays on an object whose `length` is made up, a `sort` without a
//!   comparison. The call ends in time all the same and says so; the thread ends when the function
//!   returns, and while four such threads run no further script is started.
//! - Calls go through the pipeline of every call, under the token of the outer call, and overlap only
//!   where each of them may (RUN-13). Contexts that stages add to them ride on the outer result.
//! - A script that fails ends its calls; one that returns is answered when they have ended.

mod config;
mod custody;
mod engine;
mod names;
mod plugin;
mod prompt;
mod schedule;
mod text;
mod tool;

#[cfg(test)]
mod tests;

pub use config::{CodeModeConfig, InvalidConfig};
pub use plugin::CodeModePlugin;
pub use prompt::NAME;

/// The stable codes of what scripts and the plugin fail with.
pub mod code {
    /// The code is none.
    pub const SCRIPT_SYNTAX: &str = "SCRIPT_SYNTAX";
    /// The script threw, and nothing caught it.
    pub const SCRIPT_THREW: &str = "SCRIPT_THREW";
    /// The script did not end in time.
    pub const SCRIPT_TIMEOUT: &str = "SCRIPT_TIMEOUT";
    /// The script needs more memory than it may have.
    pub const SCRIPT_OUT_OF_MEMORY: &str = "SCRIPT_OUT_OF_MEMORY";
    /// The script recurses too deep.
    pub const SCRIPT_STACK_OVERFLOW: &str = "SCRIPT_STACK_OVERFLOW";
    /// The script returned what is no JSON value.
    pub const SCRIPT_RESULT: &str = "SCRIPT_RESULT";
    /// The script waits for what will never be.
    pub const SCRIPT_DEADLOCK: &str = "SCRIPT_DEADLOCK";
    /// There is no thread for the script.
    pub const SCRIPT_NOT_STARTED: &str = "SCRIPT_NOT_STARTED";
    /// A key of the plugin's row is out of its range.
    pub const CODE_MODE_CONFIG_INVALID: &str = "CODE_MODE_CONFIG_INVALID";
    /// A script did not end while the plugin was unloaded.
    pub const CODE_MODE_STUCK: &str = "CODE_MODE_STUCK";
}
