//! Children of the local provider: what they get, how they are watched, how they end.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use crate::{
    ChildExit, LocalSubprocess, MemberInfo, ResolveError, SpawnSpec, Subprocess, TerminationReport,
};
use dsh_kernel::{Cancel, ExecutionWorld};
use support::{GRACE, LONG, alive, provider, shell, spec, start, started, state};
use tempfile::TempDir;

fn pids(members: &[MemberInfo]) -> Vec<u32> {
    let mut pids: Vec<u32> = members.iter().map(|member| member.pid).collect();
    pids.sort_unstable();
    pids
}

fn sorted<const N: usize>(mut pids: [u32; N]) -> Vec<u32> {
    pids.sort_unstable();
    pids.to_vec()
}

/// ENV-1, ENV-2
#[tokio::test]
async fn a_child_gets_the_scrubbed_environment_and_what_is_configured() {
    let ambient = [
        ("PATH", "/bin"),
        ("LANG", "C"),
        ("GITHUB_TOKEN", "ambient"),
        ("api_key", "ambient"),
        ("DB_PASSWORD", "ambient"),
        ("MY_SECRETS", "ambient"),
        ("DSH_LOG", "ambient"),
    ];
    let ambient = ambient
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    let configured = [
        ("GITHUB_TOKEN", "meant"),
        ("DSH_MODE", "meant"),
        ("LANG", "de"),
    ];
    let env = configured
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let spec = SpawnSpec {
        env,
        ..spec("/usr/bin/env", &[])
    };
    let child = LocalSubprocess::new(ambient)
        .spawn(spec)
        .await
        .expect("started");
    let text = started(child).rest().await;
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("_CONFORM_TREE="))
        .collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "DSH_MODE=meant",
            "GITHUB_TOKEN=meant",
            "LANG=de",
            "PATH=/bin"
        ]
    );
}

/// ENV-3
#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let arguments = [
        "$(echo x)",
        "`echo x`",
        "; exit 1",
        "a b",
        "*",
        "\"'\\",
        "&& true",
        "",
        "~",
        "é\n#",
        ">f",
    ];
    let mut args = vec!["%s\\0"];
    args.extend(arguments);
    let text = start(spec("/usr/bin/printf", &args)).await.rest().await;
    let arrived: Vec<&str> = text.split_terminator('\0').collect();
    assert_eq!(arrived, arguments);
}

/// ENV-4
#[tokio::test]
async fn a_child_runs_in_the_directory_it_was_given() {
    let folder = TempDir::new().expect("a folder");
    let cwd = folder
        .path()
        .canonicalize()
        .expect("canonical")
        .join("a b #é");
    std::fs::create_dir(&cwd).expect("created");
    let spec = SpawnSpec {
        cwd: cwd.clone(),
        ..spec("/bin/pwd", &["-P"])
    };
    assert_eq!(
        start(spec).await.rest().await,
        format!("{}\n", cwd.display())
    );
}

/// ENV-5: a flood is drained while nobody asks, in bounded memory, and its end is kept.
#[tokio::test]
async fn a_flood_on_stderr_does_not_block_the_child() {
    let mut child = start(spec(
        "/bin/sh",
        &[
            "-c",
            "head -c 100000000 /dev/zero >&2; echo 'the énd' >&2; echo done",
        ],
    ))
    .await;
    assert_eq!(child.line().await, "done");
    assert_eq!(child.control.wait().await, ChildExit::Code(0));
    child.control.stderr_drained(LONG).await;
    let tail = child.control.stderr_tail();
    assert!(tail.ends_with("\0the énd\n"), "{tail:?}");
    assert_eq!(tail.len(), 1000);
}

/// ENV-5
#[tokio::test]
async fn the_tail_begins_with_a_whole_character() {
    let spec = SpawnSpec {
        max_stderr_bytes: 4,
        ..spec("/bin/sh", &["-c", "printf 'a\u{e9}\u{20ac}b' >&2"])
    };
    let child = start(spec).await;
    child.control.stderr_drained(LONG).await;
    assert_eq!(child.control.stderr_tail(), "\u{20ac}b");
}

/// ENV-5: a helper that keeps stderr open holds nobody up.
#[tokio::test]
async fn stderr_that_stays_open_is_waited_for_within_the_limit_only() {
    let mut child = shell(r#"sh -c "$deaf" & echo last words >&2; read x; exit 3"#).await;
    let helper = child.pid().await;
    drop(child.stdin);
    assert_eq!(child.control.wait().await, ChildExit::Code(3));
    child.control.stderr_drained(GRACE).await;
    assert_eq!(child.control.stderr_tail(), "last words\n");
    assert!(alive(helper));
    child.control.terminate_tree(Duration::ZERO).await;
    child.control.stderr_drained(LONG).await;
}

/// CRS-1: how it ended is told to everybody who asks, before and after.
#[tokio::test]
async fn how_the_leader_ended_is_told() {
    for (script, exit) in [
        ("exit 0", ChildExit::Code(0)),
        ("exit 7", ChildExit::Code(7)),
        ("kill -9 $$", ChildExit::Signal(9)),
    ] {
        let child = shell(&format!("read x; {script}")).await;
        assert_eq!(child.control.exited(), None);
        let end = async { drop(child.stdin) };
        let (one, other, ()) = tokio::join!(child.control.wait(), child.control.wait(), end);
        assert_eq!((one, other), (exit, exit));
        assert_eq!(child.control.exited(), Some(exit));
        assert_eq!(child.control.wait().await, exit);
        assert_eq!(
            child.control.terminate_tree(GRACE).await,
            TerminationReport::default()
        );
        assert_eq!(state(child.control.pid()), None, "reaped");
    }
}

/// DIS-3, ENV-6: a leader that ends by itself is sent nothing.
#[tokio::test]
async fn a_tree_that_ended_by_itself_is_not_signalled() {
    let mut child = shell(r#"trap "echo signalled >&2" TERM; echo ready; read x; exit 0"#).await;
    assert_eq!(child.line().await, "ready");
    drop(child.stdin);
    assert_eq!(child.control.wait_tree(LONG).await, []);
    assert_eq!(
        child.control.terminate_tree(LONG).await,
        TerminationReport::default()
    );
    assert_eq!(child.control.exited(), Some(ChildExit::Code(0)));
    assert_eq!(child.control.stderr_tail(), "");
}

/// ENV-6
#[tokio::test]
async fn a_leader_that_listens_ends_within_the_grace() {
    let mut child = shell(r#"trap "exit 5" TERM; sh -c "$helper" & wait"#).await;
    // Its parent is in `wait` or on the way there; it itself has left the trap behind.
    let helper = child.pid().await;
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!(
        pids(&report.terminated),
        sorted([child.control.pid(), helper])
    );
    assert_eq!((report.killed, report.escaped), (vec![], vec![]));
    assert_eq!(child.control.exited(), Some(ChildExit::Code(5)));
    assert_eq!(state(child.control.pid()), None, "reaped");
}

/// ENV-6
#[tokio::test]
async fn the_deaf_are_killed_after_the_grace() {
    let mut child =
        shell(r#"trap "" TERM; sh -c "$deaf" & sh -c "$helper" & echo up; wait; read x <&3"#).await;
    let mut said = [child.line().await, child.line().await, child.line().await];
    said.sort_unstable_by_key(|line| line == "up");
    let [one, two, _] = said.map(|line| line.parse().unwrap_or(0));
    let leader = child.control.pid();
    let before = Instant::now();
    let report = child.control.terminate_tree(GRACE).await;
    assert!(before.elapsed() >= GRACE);
    assert_eq!(pids(&report.terminated), sorted([leader, one, two]));
    assert!(pids(&report.killed).contains(&leader), "{report:?}");
    assert_eq!(report.escaped, []);
    assert_eq!(child.control.exited(), Some(ChildExit::Signal(9)));
    assert!([leader, one, two].iter().all(|pid| !alive(*pid)));
}

/// ENV-6: SIGTERM does not reach what is stopped; SIGKILL does.
#[tokio::test]
async fn what_is_stopped_is_killed() {
    let mut child = shell(r"sh -c 'echo $$; kill -STOP $$' & echo up; wait; wait").await;
    let mut said = [child.line().await, child.line().await];
    said.sort_unstable_by_key(|line| line == "up");
    let stopped: u32 = said[0].parse().expect("a pid");
    let report = child.control.terminate_tree(GRACE).await;
    assert!(pids(&report.terminated).contains(&stopped), "{report:?}");
    assert!(!alive(stopped));
}

/// ENV-7, QUA-8
#[tokio::test]
async fn a_helper_that_outlives_the_leader_is_found_and_ended() {
    let mut child = shell(r#"sh -c "$helper" & read x; exit 0"#).await;
    let helper = child.pid().await;
    drop(child.stdin);
    assert_eq!(child.control.wait().await, ChildExit::Code(0));
    let left = child.control.wait_tree(GRACE).await;
    assert_eq!(pids(&left), [helper], "alive and unsignalled: {left:?}");
    assert!(alive(helper));
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!(pids(&report.terminated), [helper]);
    assert_eq!((report.killed, report.escaped), (vec![], vec![]));
    assert!(!alive(helper));
}

/// QUA-8
#[tokio::test]
async fn a_group_that_ends_by_itself_is_waited_for() {
    let mut child = shell(r"exec 3<&0; sh -c 'echo $$; read x' <&3 & read x; exit 0").await;
    let helper = child.pid().await;
    let leader = child.control.pid();
    assert_eq!(
        pids(&child.control.wait_tree(Duration::ZERO).await),
        sorted([leader, helper])
    );
    let end = async { drop(child.stdin) };
    let (left, ()) = tokio::join!(child.control.wait_tree(LONG), end);
    assert_eq!(left, []);
    assert!(!alive(helper) && !alive(leader));
}

/// ENV-6, the reuse of pids: the leader's pid, which is the group's too, stays taken until the
/// group is empty.
#[tokio::test]
async fn the_leader_is_reaped_after_its_group() {
    let mut child = shell(r#"sh -c "$helper" & read x; exit 0"#).await;
    child.pid().await;
    drop(child.stdin);
    assert_eq!(child.control.wait().await, ChildExit::Code(0));
    child.control.wait_tree(GRACE).await;
    assert_eq!(state(child.control.pid()), Some('Z'));
    child.control.terminate_tree(LONG).await;
    assert_eq!(state(child.control.pid()), None);
}

/// ENV-6: a helper with a session of its own is reached by its parent.
#[tokio::test]
async fn descendants_outside_the_group_are_members() {
    let mut child = shell(r#"setsid sh -c "$deaf" & wait; wait"#).await;
    let helper = child.pid().await;
    let report = child.control.terminate_tree(GRACE).await;
    assert!(pids(&report.terminated).contains(&helper), "{report:?}");
    assert!(pids(&report.killed).contains(&helper), "{report:?}");
    assert_eq!(report.escaped, []);
    assert!(!alive(helper));
}

/// ENV-6: one that has neither the group nor a parent in the tree is told, and ended.
#[tokio::test]
async fn what_escaped_is_found_by_its_mark() {
    let mut child = shell(r#"( setsid sh -c "$helper" & ) ; read x; exit 0"#).await;
    let escaped = child.pid().await;
    drop(child.stdin);
    assert_eq!(child.control.wait_tree(LONG).await, []);
    assert!(alive(escaped));
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!((report.terminated, report.killed), (vec![], vec![]));
    // Its name is that of the shell until it became another program.
    assert_eq!(pids(&report.escaped), [escaped]);
    assert!(!alive(escaped));
}

/// ENV-6: the same while the leader still runs, and for one that escaped twice over.
#[tokio::test]
async fn what_escaped_is_found_after_the_others_ended() {
    let script = r#"export deaf; setsid sh -c '( setsid sh -c "$deaf" & )'; echo escaped; read x"#;
    let mut child = shell(script).await;
    let escaped = child.pid_and("escaped").await;
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!(pids(&report.terminated), [child.control.pid()]);
    assert_eq!(pids(&report.escaped), [escaped]);
    assert!(!alive(escaped));
}

/// ENV-6: while a process replaces its program it shows no environment for a moment.
#[tokio::test]
async fn what_escaped_is_found_while_it_replaces_itself_all_the_time() {
    for _ in 0..5 {
        let mut child = shell(
            r#"export again='exec sh -c "$again"'
            ( setsid sh -c 'echo $$; exec sh -c "$again"' & ) ; echo escaped; read x; exit 0"#,
        )
        .await;
        let escaped = child.pid_and("escaped").await;
        let report = child.control.terminate_tree(LONG).await;
        assert_eq!(pids(&report.escaped), [escaped]);
        assert!(!alive(escaped));
    }
}

/// ENV-6: a strange process without the mark is left alone.
#[tokio::test]
async fn other_trees_are_left_alone() {
    let mut other = shell(r"echo $$; exec sleep 3600").await;
    let stranger = other.pid().await;
    let child = shell("read x").await;
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!(pids(&report.terminated), [child.control.pid()]);
    assert_eq!(report.escaped, []);
    assert!(alive(stranger));
    other.control.terminate_tree(LONG).await;
}

/// ENV-6: a helper that is started in answer to SIGTERM is asked too.
#[tokio::test]
async fn a_tree_that_grows_while_it_is_ended_is_ended() {
    let mut child = shell(
        r#"exec 3<&0; trap 'sh -c "$helper" & read y <&3; exit 0' TERM; sh -c "$helper" & wait"#,
    )
    .await;
    let helper = child.pid().await;
    let grow = async {
        let line = child
            .lines
            .next_line()
            .await
            .expect("read")
            .expect("a line");
        drop(child.stdin);
        line.parse().expect("a pid")
    };
    let (report, late) = tokio::join!(child.control.terminate_tree(LONG), grow);
    assert_eq!(
        pids(&report.terminated),
        sorted([child.control.pid(), helper, late])
    );
    assert_eq!((report.killed, report.escaped), (vec![], vec![]));
    assert!(!alive(late));
}

/// ENV-6: one that starts others all the time does not get away.
#[tokio::test]
async fn a_tree_that_never_stops_growing_is_ended() {
    let mut child =
        shell(r#"trap "" TERM; echo $$; while :; do /bin/true & /bin/true; done"#).await;
    let leader = child.pid().await;
    let report = child.control.terminate_tree(GRACE).await;
    assert!(pids(&report.killed).contains(&leader), "{report:?}");
    assert!(!alive(leader));
    assert_eq!(child.control.wait_tree(Duration::ZERO).await, []);
}

/// ENV-6, DIS-4: one end, whoever asks and how often.
#[tokio::test]
async fn termination_is_shared_and_idempotent() {
    let mut child = shell(r#"trap "" TERM; echo up; sh -c "$deaf" & wait; read x"#).await;
    assert_eq!(child.line().await, "up");
    child.pid().await;
    let control = &child.control;
    let (one, other) = tokio::join!(
        control.terminate_tree(GRACE),
        control.terminate_tree(Duration::ZERO)
    );
    assert_eq!(one.killed.len(), 2);
    assert_eq!(one, other);
    assert_eq!(control.terminate_tree(LONG).await, one);
}

/// ENV-6: a caller that gives up does not leave the end half done.
#[tokio::test]
async fn termination_goes_on_when_its_caller_gives_up() {
    let mut child =
        shell(r#"exec 3<&0; trap 'echo asked; read y <&3; exit 4' TERM; sh -c "$helper" & wait"#)
            .await;
    let helper = child.pid().await;
    tokio::select! {
        biased;
        _ = child.control.terminate_tree(LONG) => panic!("the leader did not wait for its input"),
        line = child.lines.next_line() => assert_eq!(line.expect("read").as_deref(), Some("asked")),
    }
    drop(child.stdin);
    assert_eq!(child.control.wait().await, ChildExit::Code(4));
    let report = child.control.terminate_tree(LONG).await;
    assert_eq!(
        pids(&report.terminated),
        sorted([child.control.pid(), helper])
    );
}

const FAMILY: &str = r#"trap "" TERM
sh -c "$deaf" &
setsid sh -c "$deaf" &
( setsid sh -c "$deaf" & )
wait; wait; wait"#;

/// DIS-6
#[tokio::test]
async fn dropping_the_control_ends_the_tree_at_once() {
    let mut child = shell(FAMILY).await;
    let family = [
        child.pid().await,
        child.pid().await,
        child.pid().await,
        child.control.pid(),
    ];
    assert!(family.iter().all(|pid| alive(*pid)));
    drop(child);
    assert!(family.iter().all(|pid| !alive(*pid)));
    assert_eq!(state(family[3]), None, "reaped");
}

/// DIS-6: also while it is being ended in peace.
#[tokio::test]
async fn dropping_the_control_cuts_a_grace_short() {
    let mut child = shell(FAMILY).await;
    let family = [
        child.pid().await,
        child.pid().await,
        child.pid().await,
        child.control.pid(),
    ];
    tokio::select! {
        biased;
        _ = child.control.terminate_tree(LONG) => panic!("nobody listens"),
        () = tokio::task::yield_now() => {}
    }
    drop(child);
    assert!(family.iter().all(|pid| !alive(*pid)));
}

/// DIS-6: dropping the tokio runtime ends the trees that were started on it.
#[test]
fn dropping_the_runtime_ends_the_tree() {
    for workers in [0, 2] {
        let runtime = if workers == 0 {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
        } else {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(workers)
                .enable_all()
                .build()
        };
        let runtime = runtime.expect("a runtime");
        let (child, family) = runtime.block_on(async {
            let mut child = shell(FAMILY).await;
            let family = [
                child.pid().await,
                child.pid().await,
                child.pid().await,
                child.control.pid(),
            ];
            (child, family)
        });
        assert!(family.iter().all(|pid| alive(*pid)));
        drop(runtime);
        assert!(family.iter().all(|pid| !alive(*pid)));
        assert_eq!(child.control.exited(), Some(ChildExit::Signal(9)));
    }
}

/// DIS-6: also where the tasks that follow the child never ran.
#[test]
fn dropping_the_runtime_at_once_ends_the_tree() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let child = runtime.block_on(provider().spawn(spec("/bin/sleep", &["3600"])));
    let child = child.expect("started");
    assert!(alive(child.control.pid()));
    drop(runtime);
    assert!(!alive(child.control.pid()));
    assert_eq!(child.control.exited(), Some(ChildExit::Signal(9)));
}

#[track_caller]
fn check_refused(error: impl std::fmt::Display, executable: &str, cwd: &str, reason: &str) {
    assert_eq!(
        error.to_string(),
        format!("cannot start {executable:?} in {cwd:?}: {reason}")
    );
}

/// CFG-4
#[tokio::test]
async fn a_start_that_fails_says_what_is_wrong() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let file = |name: &str, text: &str, mode| {
        std::fs::write(at(name), text).expect("written");
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).expect("set");
    };
    file("script", "#!/no/such/interpreter -x\n", 0o755);
    file("plain", "", 0o644);
    file("text", "just text\n", 0o755);
    let cwd = at("");
    for (executable, cwd, reason) in [
        (at("none"), &cwd, "the executable does not exist"),
        (at(""), &cwd, "the executable is a directory"),
        (at("plain"), &cwd, "permission denied; make it executable"),
        (
            at("script"),
            &cwd,
            "its interpreter \"/no/such/interpreter\" (first line of the file) does not exist; \
             install it, or correct the line",
        ),
        (
            at("text"),
            &cwd,
            "it is neither a program for this machine nor a script with a #! line",
        ),
        (
            "/bin/sh".to_owned(),
            &at("gone"),
            "the working directory does not exist",
        ),
        (
            "/bin/sh".to_owned(),
            &at("plain"),
            "the working directory is not a directory",
        ),
        (
            "bin/sh".to_owned(),
            &cwd,
            "the executable is not an absolute path; resolve it first",
        ),
    ] {
        let spec = SpawnSpec {
            cwd: cwd.into(),
            ..spec(&executable, &[])
        };
        let error = provider().spawn(spec).await.err().expect("refused");
        check_refused(error, &executable, cwd, reason);
    }
    let error = provider()
        .spawn(spec("/bin/sh", &["a\0b"]))
        .await
        .err()
        .expect("refused");
    check_refused(
        error,
        "/bin/sh",
        "/",
        "an argument or a variable holds a NUL byte",
    );
    for name in ["", "A=B", "A\0"] {
        let env = BTreeMap::from([(name.to_owned(), String::new())]);
        let spec = SpawnSpec {
            env,
            ..spec("/bin/sh", &[])
        };
        let error = provider().spawn(spec).await.err().expect("refused");
        assert!(
            error.reason.starts_with(&format!("{name:?} cannot be")),
            "{error}"
        );
    }
}

/// CFG-4: the PATH that counts is the one the child will get.
#[tokio::test]
async fn executables_are_found_on_the_childs_own_path() {
    let folder = TempDir::new().expect("a folder");
    symlink("/bin/sh", folder.path().join("conform-tool")).expect("link");
    let path = format!("/nowhere::{}", folder.path().display());
    let env = BTreeMap::from([("PATH".to_owned(), path)]);
    let find = async |name: &str, env: &BTreeMap<String, String>| {
        provider()
            .resolve_executable(name, env, &Cancel::new())
            .await
    };
    let tool = folder.path().join("conform-tool");
    assert_eq!(find("conform-tool", &env).await, Ok(tool));
    let missing = find("conform-tool", &BTreeMap::new())
        .await
        .expect_err("not on the ambient PATH");
    assert!(matches!(missing, ResolveError::Missing { .. }), "{missing}");
    let hidden = find("cat", &env)
        .await
        .expect_err("the ambient PATH does not count");
    assert!(matches!(hidden, ResolveError::Missing { .. }), "{hidden}");
    assert!(find("cat", &BTreeMap::new()).await.is_ok());
}

/// CFG-6
#[tokio::test]
async fn a_cancelled_lookup_is_refused() {
    let cancel = Cancel::new();
    cancel.cancel(dsh_kernel::CancelReason::Disposed);
    let found = provider()
        .resolve_executable("sh", &BTreeMap::new(), &cancel)
        .await;
    assert_eq!(
        found,
        Err(ResolveError::Cancelled {
            command: "sh".to_owned()
        })
    );
}

/// HST-9
#[test]
fn the_provider_is_of_the_local_world() {
    assert_eq!(provider().world(), &ExecutionWorld::local());
}
