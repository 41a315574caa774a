//! What the store needs of a file.

use std::fs::File;
use std::io::{self, Write as _};

/// A file that is written at its end.
pub(crate) trait Disk: Send {
    /// Writes all of it at the end. After an error any part of it may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts off what is beyond `length`.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// Opened for appending.
impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
