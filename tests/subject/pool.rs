//! The pool: subjects that are used again, and those that are not.

use dsh_fake_lsp::FakeServer;
use dsh_scenarios::subject::{InProcessSource, Launch, Pool, SubjectSource};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{Bench, Held, ask, built_in, deaf, in_time};

#[tokio::test]
async fn sound_subjects_are_used_again_and_others_are_not() {
    in_time(async {
        let pool = Pool::start(built_in()).await.expect("started");
        let first = pool.take().await.expect("one");
        let second = pool.take().await.expect("another");
        let (one, two) = (first.pid(), second.pid());
        assert_ne!(one, two);
        pool.give_back(first, true).await;
        let again = pool.take().await.expect("the first");
        assert_eq!(again.pid(), one);
        let held = Held::new(two.expect("a process"));
        pool.give_back(second, false).await;
        assert!(held.is_gone());
        let third = pool.take().await.expect("a new one");
        assert!(third.pid() != one && third.pid() != two);
        pool.give_back(again, true).await;
        pool.give_back(third, true).await;
        pool.close().await;
    })
    .await;
}

#[tokio::test]
async fn one_that_died_idle_is_replaced() {
    in_time(async {
        let pool = Pool::start(built_in()).await.expect("started");
        let first = pool.take().await.expect("one");
        let pid = first.pid().expect("a process");
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        kill_process(raw.expect("a pid"), Signal::KILL).expect("it is there");
        // Its end is known when a call is told.
        assert!(ask(&*first, "describe", json!({})).await.is_err());
        pool.give_back(first, true).await;
        let second = pool.take().await.expect("another");
        assert_ne!(second.pid(), Some(pid));
        assert!(ask(&*second, "describe", json!({})).await.is_ok());
        pool.give_back(second, true).await;
        pool.close().await;
    })
    .await;
}

#[tokio::test]
async fn closing_ends_all_of_them_those_that_are_out_too() {
    in_time(async {
        let pool = Pool::start(built_in()).await.expect("started");
        let idle = pool.take().await.expect("one");
        let out = pool.take().await.expect("another");
        let bench = Bench::new(deaf());
        let server = bench.serve(&*out).await;
        let both = [&idle, &out].map(|one| Held::new(one.pid().expect("a process")));
        pool.give_back(idle, true).await;
        pool.close().await;
        assert!(server.is_gone() && both.iter().all(Held::is_gone));
        assert!(pool.take().await.is_err(), "closed for good");
        pool.give_back(out, true).await;
    })
    .await;
}

#[tokio::test]
async fn a_subject_that_does_not_start_is_told_at_once() {
    let launch = Launch {
        command: vec!["false".to_owned()],
        directory: None,
    };
    assert!(in_time(Pool::start(launch)).await.is_err());
}

#[tokio::test]
async fn in_process_it_is_the_same_harness() {
    in_time(async {
        let source = InProcessSource::new();
        for _ in 0..3 {
            let subject = source.take().await.expect("one");
            assert_eq!(subject.pid(), None);
            let bench = Bench::new(FakeServer::new());
            let server = bench.serve(&*subject).await;
            assert_eq!(ask(&*subject, "unmount", json!({})).await, Ok(json!({})));
            server.wait();
            source.give_back(subject, true).await;
        }
        source.close().await;
    })
    .await;
}
