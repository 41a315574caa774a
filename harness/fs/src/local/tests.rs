use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

fn request(folder: &TempDir, file: &str, max_bytes: u64) -> SourceRequest {
    SourceRequest {
        workspace_root: folder.path().to_str().expect("UTF-8").to_owned(),
        file_path: file.to_owned(),
        max_bytes,
    }
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    }
    folder
}

async fn read(folder: &TempDir, file: &str, max_bytes: u64) -> Result<Source, SourceError> {
    LocalFileSystem::new()
        .read_source(request(folder, file, max_bytes), &Cancel::new())
        .await
}

/// HST-1, HST-4, HST-8
#[tokio::test]
async fn a_source_comes_with_its_canonical_names_and_its_text() {
    let folder = folder(&[("é #1.rs", b"\xEF\xBB\xBFa\r\n\xEF\xBF\xBD\n")]);
    let source = read(&folder, "./é #1.rs", 100).await.expect("read");
    let root = folder.path().canonicalize().expect("canonical");
    assert_eq!(source.text, "a\r\n\u{FFFD}\n");
    assert_eq!(source.path, root.join("é #1.rs"));
    assert_eq!(
        source.uri,
        format!("{}/%C3%A9%20%231.rs", source.workspace.uri)
    );
    assert_eq!(source.workspace, workspace_at(root.clone()));

    let workspace = LocalFileSystem::new()
        .workspace(folder.path().to_str().expect("UTF-8"), &Cancel::new())
        .await;
    assert_eq!(workspace, Ok(source.workspace));
}

/// HST-3
#[tokio::test]
async fn each_rejection_names_the_file_and_the_limit() {
    let folder = folder(&[
        ("big", b"123456789"),
        ("latin", b"caf\xE9"),
        ("nul", b"a\0"),
    ]);
    assert_eq!(
        read(&folder, "big", 9).await.expect("the exact limit").text,
        "123456789"
    );
    for (file, message) in [
        (
            "big",
            "source file \"big\" is larger than maxDocumentBytes (8 bytes)",
        ),
        (
            "latin",
            "source file \"latin\" is not UTF-8 text (first invalid byte at offset 3)",
        ),
        (
            "nul",
            "source file \"nul\" is not text (NUL byte at offset 1)",
        ),
        (
            "none",
            "source file \"none\" does not exist; check the path, relative ones are resolved \
             against the workspace",
        ),
    ] {
        assert_eq!(
            read(&folder, file, 8)
                .await
                .expect_err("rejected")
                .to_string(),
            message
        );
    }
}

/// HST-3: counted while streaming: the system tells size 0 for this file.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_limit_holds_for_a_file_of_unknown_size() {
    let request = |max_bytes| SourceRequest {
        workspace_root: "/proc/self".to_owned(),
        file_path: "status".to_owned(),
        max_bytes,
    };
    let fs = LocalFileSystem::new();
    let whole = fs
        .read_source(request(100_000), &Cancel::new())
        .await
        .expect("read");
    assert!(
        whole.text.starts_with("Name:") && whole.text.len() > 600,
        "{:?}",
        whole.text
    );
    let error = fs
        .read_source(request(600), &Cancel::new())
        .await
        .expect_err("rejected");
    assert_eq!(
        error,
        SourceError::TooLarge {
            path: "status".to_owned(),
            limit: 600
        }
    );
}

/// A megabyte and more takes several reads and arrives whole.
#[tokio::test]
async fn a_large_file_arrives_whole() {
    let text = "0123456789abcde\n".repeat(200_000);
    let folder = folder(&[("large", text.as_bytes())]);
    assert!(read(&folder, "large", 4_000_000).await.expect("read").text == text);
}

/// CAN-1: no thread is asked for anything. There is none to ask: outside a runtime, that panics.
#[test]
fn a_cancellation_given_before_asks_no_thread() {
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    let mut hop = std::pin::pin!(fs.hopper.hop(&cancel, |_| Ok(())));
    let outcome = hop
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert_eq!(outcome, std::task::Poll::Ready(Err(CancelReason::Caller)));
}

/// CAN-1
#[tokio::test]
async fn a_cancellation_given_before_is_the_outcome() {
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let reason = CancelReason::Timeout(Duration::from_millis(3));
    cancel.cancel(reason);
    let folder = folder(&[]);
    let error = fs
        .read_source(request(&folder, "none", 1), &cancel)
        .await
        .expect_err("cancelled");
    assert_eq!(error, SourceError::Cancelled(reason));
    assert_eq!(error.to_string(), "source read timed out after 3 ms");
    let error = fs
        .workspace("relative", &cancel)
        .await
        .expect_err("cancelled");
    assert_eq!(error, WorkspaceError::Cancelled(reason));
}

/// CAN-2, CAN-8: the caller is released while the thread is still inside its system call, and
/// closing waits for that thread.
#[tokio::test]
async fn a_cancelled_caller_is_released_at_once_and_closing_waits_for_the_thread() {
    let fs = Arc::new(LocalFileSystem::new());
    let cancel = Cancel::new();
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let (leave, gate) = std::sync::mpsc::channel::<()>();
    let work = move |stop: &Stop| {
        entered.send(()).expect("the test waits");
        gate.recv().expect("the test opens the gate");
        stop.check()
    };
    let caller = async {
        let outcome = fs.hopper.hop(&cancel, work).await;
        assert_eq!(outcome, Err(CancelReason::Caller));
    };
    let giving_up = async {
        inside.recv().await.expect("the thread is inside");
        cancel.cancel(CancelReason::Caller);
    };
    tokio::join!(caller, giving_up);

    let mut closing = Box::pin(fs.close());
    assert!(
        futures_pending(&mut closing).await,
        "a thread is still inside"
    );
    leave.send(()).expect("the thread waits");
    closing.await;
    assert!(fs.hopper.running.is_empty());
}

/// Whether the future is pending when polled once.
async fn futures_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())
    })
    .await
}

/// DIS-4
#[tokio::test]
async fn a_closed_provider_reads_nothing() {
    let folder = folder(&[("a", b"a")]);
    let fs = LocalFileSystem::new();
    fs.close().await;
    fs.close().await;
    let error = fs
        .read_source(request(&folder, "a", 1), &Cancel::new())
        .await;
    assert_eq!(error, Err(SourceError::Cancelled(CancelReason::Disposed)));
}

/// HST-9
#[test]
fn the_provider_is_of_the_local_world() {
    assert_eq!(LocalFileSystem::new().world(), &ExecutionWorld::local());
}

fn target(folder: &TempDir, file: &str) -> FsTarget {
    files::target(folder.path().join(file))
}

/// RUN-8: a stream gives the file in pieces of bounded size, and ends.
#[tokio::test]
async fn a_stream_gives_the_whole_file_in_bounded_pieces() {
    let content: Vec<u8> = (0..=250).cycle().take(3 * stream::PIECE + 17).collect();
    let folder = folder(&[("file", &content), ("empty", b"")]);
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let file = target(&folder, "file");
    let mut stream = fs.stream_text(&file, &cancel).await.expect("open");
    let mut read = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.expect("read");
        assert!(!piece.is_empty() && piece.len() <= stream::PIECE);
        read.extend_from_slice(&piece);
    }
    assert!(read == content);
    assert!(stream.next().await.is_none());
    let stat = fs.stat(&file, &cancel).await.expect("there");
    assert_eq!(stream.version(), &stat.version);
    let empty = fs.stream_text(&target(&folder, "empty"), &cancel).await;
    assert!(empty.expect("open").next().await.is_none());
}

/// RUN-14: a stream ends with the cancellation of its caller and of its provider.
#[tokio::test]
async fn a_stream_ends_with_a_cancellation() {
    let folder = folder(&[("file", &vec![b'x'; 3 * stream::PIECE])]);
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let file = target(&folder, "file");
    let mut stream = fs.stream_text(&file, &cancel).await.expect("open");
    let mut other = fs.stream_text(&file, &Cancel::new()).await.expect("open");
    assert!(stream.next().await.expect("a piece").is_ok());
    cancel.cancel(CancelReason::Caller);
    let cancelled = |reason| Some(Err(FsError::Cancelled(reason)));
    assert_eq!(stream.next().await, cancelled(CancelReason::Caller));
    assert_eq!(stream.next().await, None);
    fs.close().await;
    assert_eq!(other.next().await, cancelled(CancelReason::Disposed));
    let closed = fs.stream_text(&file, &Cancel::new()).await.err();
    assert_eq!(closed, Some(FsError::Cancelled(CancelReason::Disposed)));
}

/// RUN-8: the exact limit is accepted, and one more byte is not, whatever the size is said to be.
#[tokio::test]
async fn bytes_are_read_within_the_limit() {
    let folder = folder(&[("file", b"\xFF\x00345678")]);
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let file = target(&folder, "file");
    let read = fs.read_bytes(&file, 8, &cancel).await.expect("read");
    assert_eq!(read.bytes, b"\xFF\x00345678");
    let stat = fs.stat(&file, &cancel).await.expect("there");
    assert_eq!((stat.size, stat.version), (Some(8), read.version));
    let error = fs.read_bytes(&file, 7, &cancel).await.expect_err("larger");
    assert!(
        matches!(error, FsError::TooLarge { limit: 7, .. }),
        "{error}"
    );
    #[cfg(target_os = "linux")]
    {
        let told_empty = files::target("/proc/self/status".into());
        let stat = fs.stat(&told_empty, &cancel).await.expect("there");
        assert_eq!(stat.size, Some(0));
        let read = fs.read_bytes(&told_empty, 100_000, &cancel).await;
        assert!(!read.expect("read").bytes.is_empty());
    }
}

/// INS-9: all paths are looked at, in their order, whatever is at one of them.
#[tokio::test]
async fn a_probe_looks_at_each_path() {
    let folder = folder(&[("a", b"1"), ("b", b"22")]);
    let fs = LocalFileSystem::new();
    let paths: Vec<_> = ["b", "none", "a", "."]
        .map(|name| folder.path().join(name))
        .to_vec();
    let found = fs.probe(&paths, &Cancel::new()).await.expect("probed");
    let sizes: Vec<_> = found
        .iter()
        .map(|found| found.as_ref().map(|stat| stat.size).ok())
        .collect();
    assert_eq!(sizes, [Some(Some(2)), None, Some(Some(1)), Some(None)]);
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    assert_eq!(fs.probe(&paths, &cancel).await, Err(CancelReason::Caller));
}

/// RUN-9: a write that was cancelled before has written nothing, and one that was done is told so.
#[tokio::test]
async fn a_write_is_told_as_what_came_of_it() {
    let folder = folder(&[]);
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let file = target(&folder, "sub/file");
    let written = fs
        .write(&file, b"x".to_vec(), Expected::Absent, &cancel)
        .await;
    let stat = fs.stat(&file, &cancel).await.expect("there");
    assert_eq!(written, Ok(stat.version));
    cancel.cancel(CancelReason::Caller);
    let refused = fs.write(&file, b"y".to_vec(), Expected::Any, &cancel).await;
    assert_eq!(refused, Err(FsError::Cancelled(CancelReason::Caller)));
    assert_eq!(std::fs::read(&file.path).expect("read"), b"x");
}

/// RUN-9, RUN-14: work whose caller is dropped is told to stop, and closing waits for it.
#[tokio::test]
async fn a_dropped_caller_stops_its_work() {
    let fs = LocalFileSystem::new();
    let cancel = Cancel::new();
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let (leave, gate) = std::sync::mpsc::channel::<()>();
    let (told, mut outcome) = tokio::sync::mpsc::unbounded_channel();
    let work = move |stop: &Stop| {
        entered.send(()).expect("the test waits");
        gate.recv().expect("the test opens the gate");
        told.send(stop.check()).expect("the test waits");
        stop.check()
    };
    let mut caller = Box::pin(async {
        let _ = fs.hopper.hop_to_the_end(&cancel, work).await;
    });
    assert!(futures_pending(&mut caller).await, "the gate is closed");
    inside.recv().await.expect("the thread is inside");
    drop(caller);
    leave.send(()).expect("the thread waits");
    assert_eq!(outcome.recv().await, Some(Err(CancelReason::Caller)));
    fs.close().await;
    assert!(fs.hopper.running.is_empty());
    assert!(!cancel.is_cancelled());
}
