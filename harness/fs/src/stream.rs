//! A file of this machine, piece by piece.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use dsh_kernel::{Cancel, CancelReason};

use crate::files;
use crate::local::Hopper;
use crate::target::{FsError, FsVersion, TextStream};
use crate::text::Fill as _;

/// Most bytes of one piece: small enough to stay in a processor's cache, large enough that the hop
/// to another thread costs little beside it.
pub(crate) const PIECE: usize = 256 * 1024;

/// A file that is open for reading. The thread that reads has it while it reads.
pub(crate) struct FileStream {
    hopper: Hopper,
    cancel: Cancel,
    path: PathBuf,
    version: FsVersion,
    file: Option<File>,
}

impl FileStream {
    pub(crate) fn new(
        hopper: Hopper,
        cancel: Cancel,
        path: PathBuf,
        version: FsVersion,
        file: File,
    ) -> Self {
        Self {
            hopper,
            cancel,
            path,
            version,
            file: Some(file),
        }
    }
}

#[async_trait]
impl TextStream for FileStream {
    async fn next(&mut self) -> Option<Result<Bytes, FsError>> {
        let mut file = self.file.take()?;
        let path = self.path.clone();
        let piece = self.hopper.hop(&self.cancel, move |_| {
            Ok(piece(&mut file, &path).map(|piece| (file, piece)))
        });
        match piece.await {
            Ok(Ok((_, piece))) if piece.is_empty() => None,
            Ok(Ok((file, piece))) => {
                self.file = Some(file);
                Some(Ok(Bytes::from(piece)))
            }
            Ok(Err(error)) => Some(Err(error)),
            Err(reason) => Some(Err(FsError::Cancelled(reason))),
        }
    }

    fn version(&self) -> &FsVersion {
        &self.version
    }
}

fn piece(file: &mut File, path: &Path) -> Result<Vec<u8>, FsError> {
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        match file.fill(&mut piece) {
            Ok(_) => return Ok(piece),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(files::failed(path, &error)),
        }
    }
}

/// The whole file, if it has at most `limit` bytes.
pub(crate) fn whole(
    file: &mut File,
    path: &Path,
    size: u64,
    limit: u64,
    stop: &impl Fn() -> Result<(), CancelReason>,
) -> Result<Vec<u8>, FsError> {
    use crate::text::Rejected;
    crate::text::read_bounded(file, size, limit, stop).map_err(|rejected| match rejected {
        Rejected::TooLarge => FsError::TooLarge {
            path: files::shown(path),
            limit,
        },
        Rejected::Io(error) => files::failed(path, &error),
        Rejected::Cancelled(reason) => FsError::Cancelled(reason),
        Rejected::NotUtf8(_) | Rejected::Nul(_) => unreachable!("bytes are not judged here"),
    })
}
