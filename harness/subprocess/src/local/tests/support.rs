//! Children for the tests: small shell scripts that say on stdout when they are where the test
//! wants them, so that nothing waits for time to pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{ChildProcess, LocalSubprocess, ProcessControl, SpawnSpec, Subprocess};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader, Lines};

/// Never reached by a test that passes.
pub(super) const LONG: Duration = Duration::from_hours(1);

/// Long enough to ask, short enough to wait for in a test of those who do not listen.
pub(super) const GRACE: Duration = Duration::from_millis(50);

/// Shell functions of the scripts. `deaf`: stays until it is killed; `helper`: ends at SIGTERM.
const FUNCTIONS: &str = r#"
deaf='trap "" TERM; echo $$; exec sleep 3600'
helper='echo $$; exec sleep 3600'
"#;

pub(super) type Stdout = Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>;

pub(super) struct Started {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) lines: Stdout,
    pub(super) control: Arc<dyn ProcessControl>,
}

impl Started {
    pub(super) async fn line(&mut self) -> String {
        self.lines
            .next_line()
            .await
            .expect("readable")
            .expect("another line")
    }

    pub(super) async fn pid(&mut self) -> u32 {
        self.line().await.parse().expect("a pid")
    }

    /// The pid that one process says, once another one has said `word`.
    pub(super) async fn pid_and(&mut self, word: &str) -> u32 {
        let mut lines = [self.line().await, self.line().await];
        lines.sort_unstable_by_key(|line| line == word);
        assert_eq!(lines[1], word);
        lines[0].parse().expect("a pid")
    }

    /// Everything the child still says, and its end.
    pub(super) async fn rest(self) -> String {
        let mut text = String::new();
        self.lines
            .into_inner()
            .read_to_string(&mut text)
            .await
            .expect("text");
        text
    }
}

pub(super) fn provider() -> LocalSubprocess {
    LocalSubprocess::new([("PATH".into(), "/usr/bin:/bin".into())].into())
}

pub(super) fn spec(executable: &str, args: &[&str]) -> SpawnSpec {
    SpawnSpec {
        executable: PathBuf::from(executable),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        max_stderr_bytes: 1000,
    }
}

pub(super) fn started(child: ChildProcess) -> Started {
    let lines = BufReader::new(child.io.stdout).lines();
    Started {
        stdin: child.io.stdin,
        lines,
        control: child.control,
    }
}

pub(super) async fn start(spec: SpawnSpec) -> Started {
    started(provider().spawn(spec).await.expect("started"))
}

pub(super) async fn shell(script: &str) -> Started {
    start(spec("/bin/sh", &["-c", &format!("{FUNCTIONS}\n{script}")])).await
}

/// Whether a process runs, by the system's own table; a zombie does not.
pub(super) fn alive(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// The state letter of a process, if the system knows it.
pub(super) fn state(pid: u32) -> Option<char> {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
