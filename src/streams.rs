//! Stdin and stdout as streams, for those who serve a client on them.

/// What a client writes.
pub(crate) type Input = Box<dyn tokio::io::AsyncBufRead + Send + Unpin>;
/// What a client reads.
pub(crate) type Output = Box<dyn tokio::io::AsyncWrite + Send + Unpin>;

pub(crate) use imp::{input, output};

#[cfg(unix)]
mod imp {
    use std::io;
    use std::os::fd::AsFd as _;

    use tokio::io::BufReader;
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    /// Stdin, without a thread in between where it is a pipe.
    pub(crate) fn input() -> io::Result<Input> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let file = std::fs::File::from(stdin.try_clone()?);
        Ok(match pipe::Receiver::from_owned_fd(stdin) {
            Ok(pipe) => Box::new(BufReader::with_capacity(1 << 16, pipe)),
            Err(_) => Box::new(BufReader::new(tokio::fs::File::from_std(file))),
        })
    }

    /// Stdout, likewise.
    pub(crate) fn output() -> io::Result<Output> {
        crate::output::open()?;
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let file = std::fs::File::from(stdout.try_clone()?);
        Ok(match pipe::Sender::from_owned_fd(stdout) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::fs::File::from_std(file)),
        })
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;

    use super::{Input, Output};

    pub(crate) fn input() -> io::Result<Input> {
        Ok(Box::new(tokio::io::BufReader::new(tokio::io::stdin())))
    }

    pub(crate) fn output() -> io::Result<Output> {
        Ok(Box::new(tokio::io::stdout()))
    }
}
