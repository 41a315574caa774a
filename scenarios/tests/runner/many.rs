//! Many cases at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dsh_reports::Verdict;
use dsh_scenarios::format::Case;
use dsh_scenarios::run::{CaseResult, Observer, Summary, run};
use dsh_scenarios::subject::{
    CallError, Description, InProcessSource, Launch, Pool, Subject, SubjectSource,
};
use libtest_mimic::Trial;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, case, in_time};
use crate::doubles::{Does, Double};
use crate::trial;

const HOVER: &str = r#"
server:
  - {on: textDocument/hover, do: [{reply: {contents: hello}}]}
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
  - expect: {q: {hover: hello}}
"#;

/// Keeps results, and does something at each.
struct Keeps<F> {
    results: BTreeMap<String, CaseResult>,
    at_each: F,
}

impl<F: FnMut(&CaseResult) + Send> Observer for Keeps<F> {
    fn ended(&mut self, result: CaseResult) {
        (self.at_each)(&result);
        self.results.insert(result.id.clone(), result);
    }
}

fn cases(text: &str, count: usize) -> Vec<Arc<Case>> {
    let one = case(text);
    let numbered = |number| {
        let mut case = one.clone();
        case.id = format!("case-{number}");
        Arc::new(case)
    };
    (0..count).map(numbered).collect()
}

/// Runs cases; nothing is left of them.
#[track_caller]
fn many(
    cases: Vec<Arc<Case>>,
    source: impl AsyncFnOnce() -> Arc<dyn SubjectSource>,
    at_each: impl FnMut(&CaseResult, &CancellationToken) + Send,
) -> (Summary, BTreeMap<String, CaseResult>) {
    let bench = Bench::new();
    let cancel = bench.setup.cancel.clone();
    let mut at_each = at_each;
    let mut keeps = Keeps {
        results: BTreeMap::new(),
        at_each: |result: &CaseResult| at_each(result, &cancel),
    };
    let setup = Arc::new(bench.setup.clone());
    let summary = in_time(async {
        let source = source().await;
        let summary = run(cases, Arc::clone(&source), setup, None, 6, &mut keeps).await;
        source.close().await;
        summary
    });
    bench.nothing_left();
    (summary, keeps.results)
}

/// Gives each case one of these doubles, and counts how many are in use.
struct Doubles {
    description: Description,
    does: fn(usize) -> Does,
    taken: AtomicUsize,
    at_once: AtomicUsize,
    most: AtomicUsize,
}

impl Doubles {
    fn new(does: fn(usize) -> Does) -> Self {
        Self {
            description: Double::new(|_| Does::Nothing).description().clone(),
            does,
            taken: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl SubjectSource for Doubles {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn take(&self) -> Result<Arc<dyn Subject>, CallError> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let now = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let does = self.does;
        Ok(Arc::new(Double::at_query(move || does(number))))
    }

    async fn give_back(&self, _subject: Arc<dyn Subject>, _sound: bool) {
        self.at_once.fetch_sub(1, Ordering::Relaxed);
    }

    async fn close(&self) {}
}

fn hello() -> Does {
    Does::Answers(json!({"kind": "hover", "hover": {"contents": "hello"}}))
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("many_cases_run_at_a_time_and_each_has_a_result", || {
            let source = async || Arc::new(InProcessSource::new()) as Arc<dyn SubjectSource>;
            let (summary, results) = many(cases(HOVER, 20), source, |_, _| {});
            assert_eq!((summary.ended, summary.interrupted), (20, false));
            assert_eq!(results.len(), 20);
            for result in results.values() {
                assert_eq!(result.verdict, Verdict::Pass, "{result:#?}");
                assert!(result.transcript.is_empty(), "kept though nobody asked");
            }
        }),
        trial("processes_are_used_again", || {
            let source = async || {
                let executable = std::env::current_exe().expect("this program has a path");
                let launch = Launch::built_in(executable.to_string_lossy());
                let pool = Pool::start(launch).await.expect("it starts");
                Arc::new(pool) as Arc<dyn SubjectSource>
            };
            let (summary, results) = many(cases(HOVER, 20), source, |_, _| {});
            assert_eq!(summary.ended, 20);
            for result in results.values() {
                assert_eq!(result.verdict, Verdict::Pass, "{result:#?}");
            }
        }),
        trial("no_more_cases_are_in_flight_than_asked_for", || {
            let doubles = Arc::new(Doubles::new(|_| hello()));
            let source = Arc::clone(&doubles);
            let (summary, _) = many(
                cases(HOVER, 40),
                async move || source as Arc<dyn SubjectSource>,
                |_, _| {},
            );
            assert_eq!(summary.ended, 40);
            let most = doubles.most.load(Ordering::Relaxed);
            assert!((2..=6).contains(&most), "{most}");
            assert_eq!(doubles.at_once.load(Ordering::Relaxed), 0);
        }),
        trial("a_subject_that_panics_costs_its_own_case_only", || {
            let doubles = Doubles::new(|number| match number {
                3 => Does::Panics,
                _ => hello(),
            });
            let source = async move || Arc::new(doubles) as Arc<dyn SubjectSource>;
            let (summary, results) = many(cases(HOVER, 10), source, |_, _| {});
            assert_eq!(summary.ended, 10);
            let red: Vec<_> = results
                .values()
                .filter(|result| result.verdict != Verdict::Pass)
                .collect();
            assert_eq!(red.len(), 1, "{red:#?}");
            assert_eq!(red[0].verdict, Verdict::HarnessError);
            assert!(red[0].message.contains("panic"), "{}", red[0].message);
        }),
        trial("a_run_that_is_ended_leaves_nothing", || {
            let hang = r#"
budget_ms: 120000
server:
  - {on: textDocument/hover, do: [ignore]}
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
"#;
            let mut all = cases(hang, 8);
            let mut first = case(HOVER);
            "first".clone_into(&mut first.id);
            all.insert(0, Arc::new(first));
            let source = async || Arc::new(InProcessSource::new()) as Arc<dyn SubjectSource>;
            let (summary, results) = many(all, source, |_, cancel| cancel.cancel());
            assert!(summary.interrupted);
            assert_eq!(summary.ended, 1);
            assert_eq!(results.keys().collect::<Vec<_>>(), ["first"]);
        }),
    ]
}
