//! Starting the program, and looking at what is left of it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;
use dsh_fake_lsp::FakeServer;

/// The program under test.
pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dsh-conform"))
}

/// A working directory of its own, in which nothing is left that was not asked for.
pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The program, to be started here with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.path()).args(args);
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "DSH_LOG", "CI"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs it and takes what it said.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let output = self.command(args).output().unwrap();
        Said {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks the server of a command for `.x`, with more arguments, and measures nothing.
    #[track_caller]
    pub(crate) fn check(&self, command: &str, more: &[&str]) -> Said {
        let args = ["check", "--command", command, "--ext", ".x=x"];
        self.run(&[&args[..], &["--measure", "no"], more].concat())
    }

    /// Adds a server of one's own that is called mine, with more arguments.
    #[track_caller]
    pub(crate) fn add_mine(&self, command: &str, ext: &str, more: &[&str]) -> Said {
        let args = ["servers", "add", "mine", "--command", command, "--ext", ext];
        self.run(&[&args[..], more].concat())
    }

    /// Runs it in a shell that says something before it, and something of its streams behind it.
    pub(crate) fn in_shell(&self, before: &str, streams: &str, args: &[&str]) -> Said {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{before} exec \"$0\" \"$@\" {streams}")])
            .arg(program())
            .args(args)
            .current_dir(self.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        Said {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Everything below it, as relative paths.
    pub(crate) fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, root: &Path, all: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, all);
                } else {
                    all.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut all = Vec::new();
        walk(self.path(), self.path(), &mut all);
        all.sort();
        all
    }

    /// A copy of the toy language's sample workspace, and the place of a marker in it.
    pub(crate) fn sample(&self, file: &str, marker: &str) -> (PathBuf, String) {
        let sample = dsh_e2e::samples::sample("fake").unwrap();
        let root = self.path().join("workspace");
        std::fs::create_dir_all(&root).unwrap();
        sample.lay_out(&root).unwrap();
        let at = sample.file(file).unwrap().markers[marker];
        (root, format!("{file}:{at}"))
    }
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Ended with `status`.
    #[track_caller]
    pub(crate) fn ended(self, status: i32) -> Self {
        assert_eq!(
            self.status,
            Some(status),
            "stdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub(crate) fn out_has(self, text: &str) -> Self {
        assert!(
            self.out.contains(text),
            "no {text:?} in stdout:\n{}",
            self.out
        );
        self
    }

    /// Stderr has the text, however its lines are broken.
    #[track_caller]
    pub(crate) fn err_has(self, text: &str) -> Self {
        let unbroken = |text: &str| text.replace("\n  ", " ");
        assert!(
            unbroken(&self.err).contains(&unbroken(text)),
            "no {text:?} in stderr:\n{}",
            self.err
        );
        self
    }

    /// How many messages are on stderr: a long one goes on in lines that are indented.
    pub(crate) fn messages(&self) -> usize {
        let lines = self.err.lines();
        lines.filter(|line| !line.starts_with("  ")).count()
    }

    #[track_caller]
    pub(crate) fn report(&self) -> dsh_reports::Report {
        dsh_reports::read(&self.out).unwrap()
    }
}

/// What a whole check of the built-in server says as JSON, with everything judged and measured:
/// carried out once for all tests that look at it, since it takes seconds.
pub(crate) fn whole_check() -> &'static str {
    static SAID: OnceLock<String> = OnceLock::new();
    SAID.get_or_init(|| {
        let desk = Desk::new();
        let said = desk.run(&["check", "--format", "json"]).ended(0);
        assert_eq!(said.err, "");
        assert_eq!(desk.files(), Vec::<String>::new());
        said.out
    })
}

/// The value of `--command` that starts this fake server.
pub(crate) fn typed(server: &FakeServer) -> String {
    let command = server
        .clone()
        .subcommand("fake-lsp")
        .command(program())
        .unwrap();
    let mut words = vec![command.program.display().to_string()];
    words.extend(command.args.iter().cloned());
    shlex::try_join(words.iter().map(String::as_str)).unwrap()
}

/// Whether a process with this id is there, a zombie not counted.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

/// Waits until the process catches Ctrl-C: from then on it hears it.
pub(crate) fn until_it_listens(pid: u32) {
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & 0b10 != 0
    };
    while !catches() {
        std::thread::yield_now();
    }
}
