//! Codes and words of what went wrong.

use dsh_fs::{FileKind, Found, FsError};
use dsh_tools::ToolError;

use crate::render::listed;
use crate::replace::{Hint, Refused};
use crate::window::NotText;

/// The stable codes of the file tools' failures. A call that was given up has the pipeline's own.
pub mod code {
    /// There is no such file.
    pub const MISSING: &str = "FS_MISSING";
    /// There is something else than a regular file.
    pub const NOT_REGULAR: &str = "FS_NOT_REGULAR";
    /// The file holds no text.
    pub const NOT_TEXT: &str = "FS_NOT_TEXT";
    /// A relative path, in a session without a working directory.
    pub const CWD_REQUIRED: &str = "FS_CWD_REQUIRED";
    /// The file was not read, or has changed since (RUN-10).
    pub const STALE: &str = "FS_STALE";
    /// Permission denied.
    pub const DENIED: &str = "FS_DENIED";
    /// The file system is read-only.
    pub const READ_ONLY: &str = "FS_READ_ONLY";
    /// The disk is full.
    pub const NO_SPACE: &str = "FS_NO_SPACE";
    /// The file is larger than the tool takes.
    pub const TOO_LARGE: &str = "FS_TOO_LARGE";
    /// The system refused otherwise.
    pub const FAILED: &str = "FS_FAILED";
    /// `read`: the offset lies behind the end.
    pub const OFFSET_BEYOND_END: &str = "FS_OFFSET_BEYOND_END";
    /// `edit`: `old_string` is nowhere.
    pub const OLD_STRING_ABSENT: &str = "FS_OLD_STRING_ABSENT";
    /// `edit`: `old_string` is in more than one place.
    pub const OLD_STRING_AMBIGUOUS: &str = "FS_OLD_STRING_AMBIGUOUS";
    /// `edit`: the text is so already.
    pub const NO_CHANGE: &str = "FS_NO_CHANGE";
}

/// Most characters of a path that a message shows.
const MAX_PATH: usize = 300;

/// A path in a message: quoted, and not longer than helps.
pub(crate) fn quoted(path: &str) -> String {
    match path.char_indices().nth(MAX_PATH) {
        None => format!("{path:?}"),
        Some((end, _)) => format!("{:?}… ({} bytes)", &path[..end], path.len()),
    }
}

/// A file system's failure as a tool's.
pub(crate) fn failure(error: &FsError) -> ToolError {
    let (code, words) = match error {
        FsError::Cancelled(reason) => return ToolError::from(*reason),
        FsError::Relative { path } => (
            code::CWD_REQUIRED,
            format!(
                "{} is a relative path, and the session has no working directory; give an \
                 absolute path",
                quoted(path)
            ),
        ),
        FsError::Missing { path } => (code::MISSING, format!("{} does not exist", quoted(path))),
        FsError::NotRegular { path, kind } => (code::NOT_REGULAR, not_regular(path, *kind)),
        FsError::TooLarge { path, limit } => (
            code::TOO_LARGE,
            format!(
                "{} is larger than maxEditBytes ({limit} bytes), which is the most that is edited",
                quoted(path)
            ),
        ),
        FsError::Stale { path, found } => (code::STALE, stale(path, *found)),
        FsError::Denied { path, detail } => (
            code::DENIED,
            format!("{} cannot be used: permission denied{detail}", quoted(path)),
        ),
        FsError::ReadOnly { path } => (
            code::READ_ONLY,
            format!(
                "{} was not written: its file system is read-only",
                quoted(path)
            ),
        ),
        FsError::NoSpace { path, reason } => (
            code::NO_SPACE,
            format!(
                "{} was not written: no space is left on its file system ({reason}); what was \
                 there is unchanged",
                quoted(path)
            ),
        ),
        FsError::OtherDevice { path } => (
            code::FAILED,
            format!(
                "{} was not written: it is mounted apart from its directory, and cannot be \
                 replaced in one step",
                quoted(path)
            ),
        ),
        FsError::Inaccessible { path, reason } => (
            code::FAILED,
            format!("{} cannot be used: {reason}", quoted(path)),
        ),
        other => (code::FAILED, other.to_string()),
    };
    ToolError::new(code, words)
}

fn not_regular(path: &str, kind: FileKind) -> String {
    let path = quoted(path);
    match kind {
        FileKind::Directory => format!("{path} is a directory; name a file in it"),
        kind => format!("{path} is a {kind}; the file tools take regular files only"),
    }
}

fn stale(path: &str, found: Found) -> String {
    let path = quoted(path);
    match found {
        Found::Changed => format!(
            "{path} has changed since it was read, and was not written; read it again, and then \
             write what still fits"
        ),
        Found::Absent => format!(
            "{path} was removed since it was read, and was not written; read it again to see \
             that it is gone, and then write it anew if it is to exist"
        ),
        Found::Present => format!(
            "{path} exists by now, unlike when it was looked for, and was not written; read it \
             first"
        ),
    }
}

/// A file that the session has not read (RUN-10).
pub(crate) fn unread(path: &str) -> ToolError {
    ToolError::new(
        code::STALE,
        format!(
            "{} was not read since this session was opened, and was not written; read it first",
            quoted(path)
        ),
    )
}

pub(crate) fn not_text(path: &str, why: NotText) -> ToolError {
    let path = quoted(path);
    let words = match why {
        NotText::Nul(at) => format!(
            "{path} is a binary file (NUL byte at offset {at}); read shows text only, use a tool \
             for its format"
        ),
        NotText::Utf16 => format!(
            "{path} is UTF-16 text by its byte order mark; read shows UTF-8 only, convert it first"
        ),
    };
    ToolError::new(code::NOT_TEXT, words)
}

/// RUN-8
pub(crate) fn beyond_end(path: &str, offset: u64, total: u64) -> ToolError {
    let path = quoted(path);
    let words = match total {
        0 => format!("offset {offset} is beyond the end: {path} is empty; use offset 1"),
        1 => format!("offset {offset} is beyond the end: {path} has 1 line; use offset 1"),
        _ => format!(
            "offset {offset} is beyond the end: {path} has {total} lines; use an offset from 1 to \
             {total}"
        ),
    };
    ToolError::new(code::OFFSET_BEYOND_END, words)
}

/// RUN-9
pub(crate) fn refused(path: &str, refused: &Refused, limit: u64) -> ToolError {
    let path = quoted(path);
    match refused {
        Refused::Absent(hint) => ToolError::new(
            code::OLD_STRING_ABSENT,
            format!("old_string is nowhere in {path}; {}", hinted(hint)),
        ),
        Refused::Ambiguous { count, lines } => ToolError::new(
            code::OLD_STRING_AMBIGUOUS,
            format!(
                "old_string is in {count} places of {path}, at {}; give more of the text around \
                 the one that is meant, or set replace_all",
                listed(lines, *count)
            ),
        ),
        Refused::TooLarge => ToolError::new(
            code::TOO_LARGE,
            format!(
                "{path} would become larger than maxEditBytes ({limit} bytes), and was not edited"
            ),
        ),
        Refused::NoChange => ToolError::new(
            code::NO_CHANGE,
            format!("{path} has that text already, but for its line ends, which are kept"),
        ),
    }
}

fn hinted(hint: &Hint) -> String {
    match hint {
        Hint::Numbered => "leave out the line numbers that read puts before the lines".to_owned(),
        Hint::Replacement => "it has U+FFFD, which read shows in the place of bytes that are no \
                              UTF-8; choose text around them"
            .to_owned(),
        Hint::WhiteSpace(lines) => format!(
            "its first line is there, at {}, so compare the white space and the lines that follow",
            listed(lines, lines.len() as u64)
        ),
        Hint::Nothing => "read the file and copy the text exactly, white space included".to_owned(),
    }
}
