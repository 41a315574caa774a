//! The plugin, its threads and what the prompt says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dsh_agent::{SystemPrompt, SystemPromptPlugin};
use dsh_kernel::{Cancel, Kernel};
use dsh_tools::{ExecContext, ToolCall, ToolRegistry, ToolsPlugin, code as tools};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::fixture::Fixture;
use crate::custody::Custody;
use crate::prompt::Section;
use crate::schedule::{GRACE, Lost, Schedule, Stop};
use crate::{CodeModeConfig, CodeModePlugin, code};

/// RUN-1: tool and section come with the plugin and go with it; a script that runs is ended.
#[tokio::test]
async fn the_plugin_brings_the_tool_and_takes_it_away() {
    let kernel = Kernel::new();
    kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
    kernel.mount(Arc::new(SystemPromptPlugin)).await.unwrap();
    let plugin = kernel
        .mount(Arc::new(CodeModePlugin::default()))
        .await
        .unwrap();
    let registry = kernel.service::<ToolRegistry>().unwrap();
    let prompt = kernel.service::<SystemPrompt>().unwrap();
    let names: Vec<String> = registry.list().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["run_code"]);
    assert!(
        prompt.assemble().contains("run_code"),
        "{}",
        prompt.assemble()
    );
    let call = ToolCall {
        id: "c".to_owned(),
        name: "run_code".to_owned(),
        arguments: json!({ "code": "for (;;) {}" }),
    };
    let (result, unloaded) = tokio::join!(registry.call(call, None, Cancel::new()), async {
        kernel.unmount(&plugin).await
    });
    assert_eq!(
        result.code.as_deref(),
        Some(tools::TOOL_CANCELLED),
        "{}",
        result.text()
    );
    assert_eq!(unloaded, Ok(()));
    assert_eq!(registry.list(), []);
    assert_eq!(prompt.assemble(), "");
    kernel.dispose().await.unwrap();
}

#[tokio::test]
async fn a_plugin_with_a_wrong_key_does_not_start() {
    let kernel = Kernel::new();
    kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
    kernel.mount(Arc::new(SystemPromptPlugin)).await.unwrap();
    let config = CodeModeConfig {
        wall_ms: 0,
        ..CodeModeConfig::default()
    };
    let error = kernel
        .mount(Arc::new(CodeModePlugin::new(config)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(code::CODE_MODE_CONFIG_INVALID));
    assert!(error.to_string().contains("wallMs"), "{error}");
    kernel.dispose().await.unwrap();
}

/// RUN-12: the section follows the tools there are, and stays as it is while they do.
#[tokio::test]
async fn the_section_tells_the_tools_there_are() {
    let prompt = SystemPrompt::new();
    let fixture = Fixture::new();
    let registry = fixture.registry.clone();
    let section = Section::new(prompt.clone(), registry);
    let before = prompt.assemble();
    assert!(before.contains("\n- tools.web_search(object)"), "{before}");
    assert!(!before.contains("tools.run_code"), "{before}");
    section.refresh();
    assert_eq!(prompt.assemble(), before);
    drop(fixture);
    section.refresh();
    assert!(!prompt.assemble().contains("tools.web_search"));
    section.release();
    section.refresh();
    assert_eq!(prompt.assemble(), "");
}

/// A thread that does not end is told of; one that does is joined.
#[tokio::test]
async fn threads_are_joined_or_told_of() {
    let custody = Custody::default();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let stop = Arc::new(AtomicBool::new(false));
    custody
        .start(1 << 16, Arc::clone(&stop), move || {
            let _ = wait.recv();
        })
        .unwrap();
    assert_eq!(custody.close(Duration::ZERO).await, Err(1));
    assert!(stop.load(Ordering::Relaxed));
    drop(go_on);
    let refused = custody.start(1 << 16, stop, || {});
    assert!(refused.is_err());
    assert_eq!(custody.close(Duration::ZERO).await, Ok(()));
}

/// Scripts that were given up and do not end are not joined by ever more of their kind.
#[tokio::test]
async fn threads_that_do_not_end_are_few() {
    let custody = Custody::default();
    let mut wedged = Vec::new();
    let refused = loop {
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let given_up = Arc::new(AtomicBool::new(true));
        let started = custody.start(1 << 16, given_up, move || {
            let _ = wait.recv();
        });
        match started {
            Ok(()) => wedged.push(go_on),
            Err(reason) => break reason,
        }
        assert!(wedged.len() < 100, "there is no bound");
    };
    assert!(refused.starts_with("4 scripts"), "{refused}");
    assert_eq!(wedged.len(), 4);
    drop(wedged);
    custody.settled().await;
    let running = Arc::new(AtomicBool::new(false));
    custody.start(1 << 16, running, || {}).unwrap();
    assert_eq!(custody.close(Duration::from_mins(1)).await, Ok(()));
}

/// The interpreter's panic is an error like any other.
#[tokio::test]
async fn a_script_without_a_report_is_told() {
    let fixture = Fixture::new();
    let context = ExecContext::new(Cancel::new(), None, "c");
    for stuck in [false, true] {
        let (_requesting, requests) = mpsc::unbounded_channel();
        let (finish, report) = oneshot::channel();
        let finish = stuck.then_some(finish);
        let flag = Arc::new(AtomicBool::new(false));
        let (replies, _listening) = std::sync::mpsc::channel();
        let schedule = Schedule {
            registry: &fixture.registry,
            context: &context.clone().with_cancel(Cancel::new()),
            requests,
            report,
            stop: Stop {
                flag: Arc::clone(&flag),
                replies,
            },
            // The grace is over as well.
            deadline: tokio::time::Instant::now()
                .checked_sub(GRACE)
                .expect("the clock has run that long"),
        };
        let expected = if stuck { Lost::Stuck } else { Lost::Panicked };
        assert_eq!(schedule.run().await.unwrap_err(), expected);
        assert!(flag.load(Ordering::Relaxed), "the script is to end");
        drop(finish);
    }
}

/// A built-in function that is at work cannot be interrupted; the script ends right behind it.
#[tokio::test]
async fn a_long_built_in_function_delays_the_end() {
    let fixture = Fixture::with(|config| config.wall_ms = 1);
    fixture
        .failure(
            "[].indexOf.call({ length: 1e6 }, 1); for (;;) {}",
            code::SCRIPT_TIMEOUT,
        )
        .await;
}
