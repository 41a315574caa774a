//! What is true of one played process, and what the host holds of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_subprocess::{ChildExit, MemberInfo, ProcessControl, TerminationReport};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The truth about one process.
pub(super) struct State {
    pub(super) pid: u32,
    pub(super) exit: watch::Sender<Option<ChildExit>>,
    pub(super) stdin_open: watch::Sender<bool>,
    pub(super) stderr: Mutex<String>,
    pub(super) signals: Mutex<Vec<(&'static str, Instant)>>,
    pub(super) helpers: watch::Sender<usize>,
    pub(super) deaf: Mutex<bool>,
    pub(super) escaped: Mutex<Vec<MemberInfo>>,
    /// Told when a termination has ended.
    pub(super) ended: Notify,
}

impl State {
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid,
            exit: watch::Sender::new(None),
            stdin_open: watch::Sender::new(true),
            stderr: Mutex::default(),
            signals: Mutex::default(),
            helpers: watch::Sender::new(0),
            deaf: Mutex::new(false),
            escaped: Mutex::default(),
            ended: Notify::new(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.exit.borrow().is_none()
    }

    pub(super) fn exit(&self, exit: ChildExit) {
        self.exit
            .send_if_modified(|current| current.is_none() && current.replace(exit).is_none());
    }

    fn signal(&self, name: &'static str) {
        self.signals
            .lock()
            .expect("unpoisoned")
            .push((name, Instant::now()));
    }

    fn is_empty(&self) -> bool {
        self.exit.borrow().is_some() && *self.helpers.borrow() == 0
    }
}

/// What the host holds of a process.
pub(super) struct Control(Arc<State>);

impl Control {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self(state)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.0.signal("dropped");
            self.0.helpers.send_replace(0);
            self.0.exit(ChildExit::Signal(9));
        }
    }
}

#[async_trait]
impl ProcessControl for Control {
    fn pid(&self) -> u32 {
        self.0.pid
    }

    async fn wait(&self) -> ChildExit {
        let mut exit = self.0.exit.subscribe();
        let exit = exit
            .wait_for(Option::is_some)
            .await
            .expect("the sender is held");
        (*exit).expect("it was waited for")
    }

    fn exited(&self) -> Option<ChildExit> {
        *self.0.exit.borrow()
    }

    async fn stdin_closed(&self) {
        let mut open = self.0.stdin_open.subscribe();
        open.wait_for(|open| !open)
            .await
            .expect("the sender is held");
    }

    fn stderr_tail(&self) -> String {
        self.0.stderr.lock().expect("unpoisoned").clone()
    }

    async fn stderr_drained(&self, _: Duration) {}

    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo> {
        let mut helpers = self.0.helpers.subscribe();
        let gone = async {
            self.wait().await;
            helpers
                .wait_for(|count| *count == 0)
                .await
                .expect("the sender is held");
        };
        match tokio::time::timeout(limit, gone).await {
            Ok(()) => Vec::new(),
            Err(_) => vec![MemberInfo {
                pid: 1,
                name: "helper".to_owned(),
            }],
        }
    }

    async fn terminate_tree(&self, grace: Duration) -> TerminationReport {
        if !self.0.is_empty() {
            self.0.signal("SIGTERM");
            if *self.0.deaf.lock().expect("unpoisoned") {
                let _ = tokio::time::timeout(grace, self.wait()).await;
                self.0.signal("SIGKILL");
                self.0.exit(ChildExit::Signal(9));
            }
            self.0.helpers.send_replace(0);
            self.0.exit(ChildExit::Signal(15));
        }
        self.0.ended.notify_one();
        let escaped = self.0.escaped.lock().expect("unpoisoned").clone();
        TerminationReport {
            escaped,
            ..TerminationReport::default()
        }
    }
}
