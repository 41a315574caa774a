//! The server's end of the control channel.

#[cfg(unix)]
pub(crate) use unix::Link;

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use dsh_transcript::EventBody;

    use crate::control::{Down, Lines, Role, Up};

    /// How long an acknowledgement may take before the server goes on without it.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// A connection to the runner. An error means that the channel is lost.
    #[derive(Debug)]
    pub(crate) struct Link {
        stream: UnixStream,
        lines: Lines,
        received: VecDeque<Down>,
        synced: u64,
        /// The number the runner gave this process.
        pub(crate) process: u32,
    }

    impl Link {
        /// Connects and is told its process number.
        pub(crate) fn server(address: &str, argv: Vec<String>, cwd: String) -> io::Result<Self> {
            let mut link = Self::connect(address, Role::Server, argv, cwd)?;
            link.process = loop {
                link.fill()?;
                match link.received.pop_front() {
                    Some(Down::Welcome { process }) => break process,
                    Some(other) => return Err(unexpected(&other)),
                    None => {}
                }
            };
            Ok(link)
        }

        /// Connects as a process that only waits for the end.
        pub(crate) fn helper(address: &str) -> io::Result<Self> {
            Self::connect(address, Role::Helper, Vec::new(), String::new())
        }

        fn connect(address: &str, role: Role, argv: Vec<String>, cwd: String) -> io::Result<Self> {
            let stream = UnixStream::connect(address)?;
            let (lines, received) = (Lines::default(), VecDeque::new());
            let mut link = Self {
                stream,
                lines,
                received,
                synced: 0,
                process: 1,
            };
            link.send(&Up::Hello {
                role,
                pid: std::process::id(),
                argv,
                cwd,
            })?;
            Ok(link)
        }

        fn send(&mut self, message: &Up) -> io::Result<()> {
            let mut line = serde_json::to_vec(message)?;
            line.push(b'\n');
            self.stream.write_all(&line)
        }

        /// Reports an event.
        pub(crate) fn event(&mut self, at_us: u64, body: EventBody) -> io::Result<()> {
            self.send(&Up::Event { at_us, body })
        }

        /// Waits until the runner has everything that was sent.
        pub(crate) fn sync(&mut self) -> io::Result<()> {
            self.synced += 1;
            let wanted = self.synced;
            self.send(&Up::Sync { number: wanted })?;
            self.stream.set_read_timeout(Some(PATIENCE))?;
            let mut others = VecDeque::new();
            let outcome = loop {
                match self.received.pop_front() {
                    Some(Down::Done { number }) if number >= wanted => break Ok(()),
                    Some(other) => others.push_back(other),
                    None => {
                        if let Err(error) = self.fill() {
                            break Err(error);
                        }
                    }
                }
            };
            self.received = others;
            self.stream.set_read_timeout(None)?;
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                outcome => outcome,
            }
        }

        /// Reads what is there; waits if nothing is.
        pub(crate) fn fill(&mut self) -> io::Result<()> {
            let mut buffer = [0; 4096];
            let count = loop {
                match self.stream.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.lines.push(&buffer[..count]);
            if self.lines.is_too_long() {
                return Err(io::Error::other("the runner sent a line that is too long"));
            }
            while let Some(line) = self.lines.next() {
                self.received.push_back(serde_json::from_slice(&line)?);
            }
            Ok(())
        }

        /// The next message that was read.
        pub(crate) fn next(&mut self) -> Option<Down> {
            self.received.pop_front()
        }

        pub(crate) fn stream(&self) -> &UnixStream {
            &self.stream
        }
    }

    fn unexpected(message: &Down) -> io::Error {
        io::Error::other(format!(
            "the runner should say its welcome, and said {message:?}"
        ))
    }
}
