//! Providers that are not like this machine's: without sizes, with wrong ones, with a full disk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dsh_fs::{
    Expected, FileBytes, FileSystem, FsError, FsStat, FsTarget, FsVersion, LocalFileSystem, Source,
    SourceError, SourceRequest, TextStream, Workspace, WorkspaceError,
};
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use dsh_tool_fs::ToolFsConfig;
use serde_json::json;

use crate::support::Fixture;

/// This machine's files, of which it tells the size that it is told to, and whose disk is full.
struct Odd {
    inner: LocalFileSystem,
    size: Option<u64>,
    reads: AtomicUsize,
    streams: AtomicUsize,
}

impl Odd {
    fn telling(size: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            inner: LocalFileSystem::new(),
            size,
            reads: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        })
    }

    /// How often a file was read at once, and how often streamed.
    fn counts(&self) -> (usize, usize) {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (count(&self.reads), count(&self.streams))
    }
}

#[async_trait]
impl FileSystem for Odd {
    fn world(&self) -> &ExecutionWorld {
        self.inner.world()
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        self.inner.workspace(root, cancel).await
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        self.inner.read_source(request, cancel).await
    }

    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        self.inner.resolve(base, path, cancel).await
    }

    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError> {
        let stat = self.inner.stat(target, cancel).await?;
        Ok(FsStat {
            size: self.size,
            ..stat
        })
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        self.inner.probe(paths, cancel).await
    }

    async fn names(
        &self,
        directory: &Path,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError> {
        self.inner.names(directory, most, cancel).await
    }

    async fn read_bytes(
        &self,
        target: &FsTarget,
        limit: u64,
        cancel: &Cancel,
    ) -> Result<FileBytes, FsError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read_bytes(target, limit, cancel).await
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.inner.stream_text(target, cancel).await
    }

    async fn write(
        &self,
        target: &FsTarget,
        _bytes: Vec<u8>,
        _expected: Expected,
        _cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        Err(FsError::NoSpace {
            path: target.display_path.clone(),
            reason: "quota exceeded".to_owned(),
        })
    }
}

async fn reading(size: Option<u64>, content: &str) -> (usize, usize) {
    let config = ToolFsConfig {
        stream_min_size: 10,
        ..ToolFsConfig::default()
    };
    let odd = Odd::telling(size);
    let fixture = Fixture::over(Arc::clone(&odd) as Arc<dyn FileSystem>, config).await;
    fixture.put("a", content);
    let shown = fixture.text("read", json!({"file_path": "a"})).await;
    assert!(shown.contains(&format!("\n1: {content}\n")), "{shown}");
    odd.counts()
}

/// RUN-8: a file of unknown size, or a large one, is streamed; a small one is read at once.
#[tokio::test]
async fn files_are_streamed_by_their_size() {
    assert_eq!(reading(None, "small").await, (0, 1));
    assert_eq!(reading(Some(10), "small").await, (0, 1));
    assert_eq!(reading(Some(9), "small").await, (1, 0));
    // One that is larger than it was said to be is streamed after all.
    assert_eq!(reading(Some(9), "0123456789").await, (1, 0));
    assert_eq!(reading(Some(9), "01234567890").await, (1, 1));
}

/// RUN-9: a failure of the provider is told by its reason, and nothing was observed.
#[tokio::test]
async fn a_full_disk_is_told_and_not_observed() {
    let odd = Odd::telling(None) as Arc<dyn FileSystem>;
    let fixture = Fixture::over(odd, ToolFsConfig::default()).await;
    fixture.put("a", "x");
    for (tool, arguments) in [
        ("write", json!({"file_path": "a", "content": "y"})),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
        ),
    ] {
        let (code, text) = fixture.refusal(tool, arguments).await;
        assert_eq!(code, "FS_NO_SPACE");
        let words = "\"/w/a\" was not written: no space is left on its file system (quota \
                     exceeded); what was there is unchanged";
        assert_eq!(text, words);
    }
    assert!(fixture.observed().is_empty());
}
