//! Noticing that a child no longer has its stdin open, without writing to it (CRS-1).
//!
//! On Linux the write end of a pipe shows an error as soon as nobody has its read end any more. It
//! is watched through an epoll descriptor of its own, which holds no reference to the pipe: the
//! host still closes the child's stdin by dropping it.

#[cfg(target_os = "linux")]
pub(crate) use linux::InputWatch;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::InputWatch;

#[cfg(target_os = "linux")]
mod linux {
    use std::future::pending;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::event::epoll;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Watches the write end of one pipe.
    #[derive(Debug)]
    pub(crate) struct InputWatch(AsyncFd<OwnedFd>);

    impl InputWatch {
        /// Watches `stdin` for as long as it is open here. Must be called inside a Tokio runtime.
        pub(crate) fn new(stdin: impl AsFd) -> io::Result<Self> {
            let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            // Errors are told without being asked for; nothing else is of interest.
            let (data, errors_only) = (epoll::EventData::new_u64(0), epoll::EventFlags::empty());
            epoll::add(&watch, stdin, data, errors_only)?;
            #[expect(
                deprecated,
                reason = "the successor is unsafe; an owned descriptor stays the same and open"
            )]
            AsyncFd::with_interest(watch, Interest::READABLE).map(Self)
        }

        /// Ends when nobody has the read end any more; never if the write end is dropped before.
        pub(crate) async fn closed(&self) {
            // The event is not taken, so that it is there for whoever asks later.
            if self.0.readable().await.is_err() {
                // The runtime is going down.
                pending::<()>().await;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::future::pending;
    use std::io;

    /// Notices nothing: a closed stdin shows when it is written to.
    #[derive(Debug)]
    pub(crate) struct InputWatch;

    impl InputWatch {
        pub(crate) fn new<T>(_: T) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn closed(&self) {
            pending::<()>().await;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::PipeReader;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::InputWatch;

    const SOON: Duration = Duration::from_secs(30);

    fn watched() -> (PipeReader, std::io::PipeWriter, InputWatch) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let watch = InputWatch::new(&writer).expect("epoll");
        (reader, writer, watch)
    }

    /// Whether it is told now, when everything that is to be noticed has been.
    async fn is_told(watch: &InputWatch) -> bool {
        tokio::task::yield_now().await;
        timeout(Duration::ZERO, watch.closed()).await.is_ok()
    }

    /// CRS-1
    #[tokio::test]
    async fn a_read_end_that_closes_is_told_to_everybody_who_waits() {
        let (reader, _writer, watch) = watched();
        assert!(!is_told(&watch).await);
        let waiting = pin!(async { tokio::join!(watch.closed(), watch.closed()) });
        drop(reader);
        timeout(SOON, waiting).await.expect("told");
        timeout(SOON, watch.closed()).await.expect("told again");
    }

    /// CRS-1
    #[tokio::test]
    async fn one_that_was_closed_before_is_told_too() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let watch = InputWatch::new(&writer).expect("epoll");
        timeout(SOON, watch.closed()).await.expect("told");
    }

    /// CRS-1: another holder of the read end is enough for it to be open.
    #[tokio::test]
    async fn it_is_open_while_anybody_has_it() {
        let (reader, _writer, watch) = watched();
        let other = reader.try_clone().expect("a descriptor");
        drop(reader);
        assert!(!is_told(&watch).await);
        drop(other);
        timeout(SOON, watch.closed()).await.expect("told");
    }

    /// DIS-2: the watch does not keep the pipe open.
    #[tokio::test]
    async fn the_writer_still_closes_the_pipe_by_dropping() {
        use std::io::Read as _;
        let (mut reader, writer, watch) = watched();
        drop(writer);
        assert_eq!(reader.read(&mut [0]).expect("the end"), 0);
        drop(reader);
        assert!(!is_told(&watch).await);
    }
}
