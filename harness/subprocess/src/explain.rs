//! Puts a failed start into words. The system says "not found" of the working directory, the
//! executable, the interpreter of a script and the loader of a program alike.
//!
//! Blocking: it looks at files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Most bytes of a first line that systems look at.
const FIRST_LINE: u64 = 256;

/// Why `executable` could not be started in `cwd`, given what the system said.
pub(crate) fn spawn(executable: &Path, cwd: &Path, error: &io::Error) -> String {
    about_cwd(cwd)
        .or_else(|| about_executable(executable, error))
        .unwrap_or_else(|| match error.kind() {
            ErrorKind::InvalidInput => "an argument or a variable holds a NUL byte".to_owned(),
            ErrorKind::ArgumentListTooLong => {
                "its arguments and environment are larger than the system allows".to_owned()
            }
            _ => error.to_string(),
        })
}

fn about_cwd(cwd: &Path) -> Option<String> {
    let reason = match std::fs::metadata(cwd) {
        Ok(metadata) if metadata.is_dir() => match std::fs::metadata(cwd.join(".")) {
            Ok(_) => return None,
            Err(error) => format!("cannot be entered ({error})"),
        },
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be used ({error})"),
    };
    Some(format!("the working directory {reason}"))
}

fn about_executable(executable: &Path, error: &io::Error) -> Option<String> {
    match std::fs::metadata(executable) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Some("the executable does not exist".to_owned());
        }
        Err(error) => return Some(format!("the executable cannot be used ({error})")),
        Ok(metadata) if metadata.is_dir() => {
            return Some("the executable is a directory".to_owned());
        }
        Ok(_) => {}
    }
    let start = first_bytes(executable).unwrap_or_default();
    let interpreter = interpreter(&start);
    match (error.kind(), interpreter) {
        (ErrorKind::NotFound, Some(interpreter)) => Some(format!(
            "its interpreter {interpreter:?} (first line of the file) does not exist; install it, \
             or correct the line"
        )),
        (ErrorKind::NotFound, None) => Some(
            "the file is there, but the loader it asks for is not: it was built for another system"
                .to_owned(),
        ),
        (ErrorKind::PermissionDenied, Some(interpreter)) => Some(format!(
            "permission denied; it and its interpreter {interpreter:?} must both be executable"
        )),
        (ErrorKind::PermissionDenied, None) => {
            Some("permission denied; make it executable".to_owned())
        }
        _ if is_format_error(error) => {
            Some("it is neither a program for this machine nor a script with a #! line".to_owned())
        }
        _ => None,
    }
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(FIRST_LINE).read_to_end(&mut start)?;
    Ok(start)
}

/// The interpreter that a script's first line names.
fn interpreter(start: &[u8]) -> Option<String> {
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let word = line
        .trim_ascii_start()
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .next()?;
    Some(String::from_utf8_lossy(word).into_owned())
}

#[cfg(unix)]
fn is_format_error(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOEXEC)
}

#[cfg(not(unix))]
fn is_format_error(_error: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_is_the_first_word_of_the_first_line() {
        assert_eq!(interpreter(b"#!/bin/sh -e\nx"), Some("/bin/sh".to_owned()));
        assert_eq!(interpreter(b"#! /bin/sh"), Some("/bin/sh".to_owned()));
        assert_eq!(interpreter(b"#!/bin/sh\r\n"), Some("/bin/sh\r".to_owned()));
        assert_eq!(interpreter(b"#!"), Some(String::new()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }
}
