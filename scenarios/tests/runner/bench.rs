//! Cases from text, run in a temp folder of their own, and a look at what is left of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_reports::Verdict;
use dsh_scenarios::format::{Case, load};
use dsh_scenarios::run::{Ran, Setup, Tampering, run_case};
use dsh_scenarios::subject::{InProcess, Subject};

/// How long a test may take before it counts as hanging. Nothing takes anywhere near it.
const DEADLINE: Duration = Duration::from_mins(2);

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started")
}

/// Runs a test to its end, or panics when it hangs.
pub(crate) fn in_time<T>(test: impl Future<Output = T>) -> T {
    let runtime = runtime();
    let ended = runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await });
    ended.expect("the test hangs")
}

/// A case of this text; what is not said of title, clauses, profile and demands is added.
pub(crate) fn case(text: &str) -> Case {
    let whole = whole(text);
    let mut loaded = load("case", "case.yaml", whole.as_bytes());
    assert_eq!(loaded.cases.len(), 1, "{:?}", loaded.diagnostics);
    loaded.cases.remove(0)
}

/// A case that the loader would refuse.
pub(crate) fn unchecked(text: &str) -> Case {
    Case {
        id: "case".to_owned(),
        file: "case.yaml".to_owned(),
        line: 1,
        scenario: serde_saphyr::from_str(&whole(text)).expect("a scenario"),
    }
}

fn whole(text: &str) -> String {
    let mut whole = String::new();
    for (key, value) in [
        ("title", "t"),
        ("clauses", "[OPN-1]"),
        ("profile", "transient"),
        // Every case has to demand something; this one always holds.
        ("never", "[{received: textDocument/didSave}]"),
    ] {
        if !text
            .lines()
            .any(|line| line.starts_with(&format!("{key}:")))
        {
            whole.extend([key, ": ", value, "\n"]);
        }
    }
    whole.push_str(text);
    whole
}

/// A temp folder with a setup that uses it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) setup: Setup,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("runner")
            .tempdir()
            .expect("a temp folder");
        let executable = std::env::current_exe().expect("this program has a path");
        let setup = Setup::new(executable, folder.path());
        Self { folder, setup }
    }

    pub(crate) async fn run(
        &self,
        text: &str,
        subject: &dyn Subject,
        tampering: Option<&dyn Tampering>,
    ) -> Ran {
        run_case(&case(text), subject, &self.setup, tampering).await
    }

    /// Nothing is left: no folder, no process.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        let left: Vec<_> = std::fs::read_dir(self.folder.path())
            .expect("it exists")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "folders are left: {left:?}");
        let processes = marked(self.folder.path());
        assert!(processes.is_empty(), "processes are left: {processes:?}");
    }
}

/// The processes of cases below this folder.
fn marked(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("it exists");
    let wanted = format!("CONFORM_CASE={}/", folder.display());
    let entries = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    entries
        .filter(|entry| {
            // A process that ends meanwhile is none that is left.
            std::fs::read(entry.path().join("environ")).is_ok_and(|block| {
                block
                    .split(|byte| *byte == 0)
                    .any(|part| part.starts_with(wanted.as_bytes()))
            })
        })
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Runs a case with the built-in harness in this process; nothing is left of it.
#[track_caller]
pub(crate) fn ran(text: &str) -> Ran {
    ran_with(text, Arc::new(InProcess::new()), |_| {})
}

/// Runs a case with a subject and a changed setup; nothing is left of it.
#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "a test hands over the subject it has just made"
)]
pub(crate) fn ran_with(
    text: &str,
    subject: Arc<dyn Subject>,
    change: impl FnOnce(&mut Setup),
) -> Ran {
    ran_case(&case(text), &*subject, change)
}

/// Runs a case with a subject and a changed setup; nothing is left of it.
#[track_caller]
pub(crate) fn ran_case(case: &Case, subject: &dyn Subject, change: impl FnOnce(&mut Setup)) -> Ran {
    let mut bench = Bench::new();
    change(&mut bench.setup);
    let ran = in_time(async {
        let ran = run_case(case, subject, &bench.setup, None).await;
        subject.end().await;
        ran
    });
    bench.nothing_left();
    ran
}

/// The verdict, and the message says this.
#[track_caller]
pub(crate) fn is(ran: &Ran, verdict: Verdict, message: &str) {
    let result = &ran.result;
    assert_eq!(result.verdict, verdict, "{result:#?}");
    assert!(result.message.contains(message), "{result:#?}");
}
