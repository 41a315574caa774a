//! The steps of a case.

use dsh_transcript::EventBody;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::{Driver, succeeds, to_value, unknown};
use crate::format::check::MAIN;
use crate::format::{
    AsStep, CancelStep, ControlStep, FileSpec, Outcome, Pattern, PerformStep, QueryStep,
    RegisterStep, SessionSpec, SpecialFile, Step, ToolStep, TurnStep,
};
use crate::run::checks::{Failure, describe};
use crate::run::judge::Stop;
use crate::run::outcome::{self, Context};
use crate::run::requests::{self, Turn};
use crate::run::{Tampering, place};
use crate::subject::{QueryParams, ToolParams, TurnParams, TurnRequest};

impl Driver<'_> {
    pub(super) async fn mount(&mut self) -> Result<(), Stop> {
        let params = self.mount_params();
        self.mounted = Some("mount".to_owned());
        self.call("mount", "mount", "mount", params).await;
        self.until_settled("mount").await?;
        let check = self.scenario.mount.clone();
        let check = check.unwrap_or_else(succeeds);
        self.expect("mount", &check)
    }

    fn mount_params(&self) -> Value {
        to_value(&self.mounting)
    }

    pub(super) async fn steps(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Query(step) => self.query(step).await,
            Step::Tool(step) => self.tool(step).await,
            Step::Turn(step) => {
                self.turn(step).await;
                Ok(())
            }
            Step::Cancel(step) => self.cancel(step).await,
            Step::Release(name) => {
                self.control.release(name);
                Ok(())
            }
            Step::Perform(step) => self.perform(step),
            Step::Wait(pattern) => self.wait(pattern).await,
            Step::Write(files) => {
                self.stage.write(files)?;
                for name in files.keys() {
                    self.changed(name, "written");
                }
                Ok(())
            }
            Step::Remove(name) => {
                self.stage.remove(name)?;
                self.changed(name, "removed");
                Ok(())
            }
            Step::Rename(step) => {
                self.stage.rename(&step.from, &step.to)?;
                self.changed(&step.from, "renamed");
                Ok(())
            }
            Step::Link(links) => {
                for (name, target) in links {
                    let link = FileSpec::Special(SpecialFile::Link(target.clone()));
                    self.stage.write(&[(name.clone(), link)].into())?;
                    self.changed(name, "linked");
                }
                Ok(())
            }
            Step::Dispose(step) => self.dispose(step).await,
            Step::Mount(step) => self.mount_again(step).await,
            Step::Register(step) => self.register(step).await,
            Step::Control(step) => self.control(step).await,
            Step::Expect(checks) => self.expectations(checks).await,
        }
    }

    fn changed(&self, path: &str, change: &str) {
        let body = EventBody::FileChanged {
            path: path.to_owned(),
            change: change.to_owned(),
        };
        self.recorder.emit(None, body);
    }

    fn place(&self, at: &str) -> Result<place::At, Stop> {
        place::read(at, &self.stage.markers).map_err(Stop::Fault)
    }

    async fn query(&mut self, step: &QueryStep) -> Result<(), Stop> {
        let at = self.place(&step.at)?;
        let workspace = &self.stage.places.workspace;
        let workspace = step
            .workspace
            .clone()
            .unwrap_or_else(|| workspace.display().to_string());
        let params = to_value(&QueryParams {
            operation: step.operation.clone(),
            file_path: at.file,
            position: at.place.position(),
            workspace_root: workspace,
            cancelled: step.cancelled,
        });
        self.call(&step.r#as, "query", &step.operation, params)
            .await;
        Ok(())
    }

    async fn tool(&mut self, step: &ToolStep) -> Result<(), Stop> {
        let arguments = if let Some(arguments) = &step.arguments {
            arguments.clone()
        } else {
            let mut arguments = json!({});
            if let Some(operation) = &step.operation {
                arguments["operation"] = operation.clone().into();
            }
            if let Some(at) = &step.at {
                let at = self.place(at)?;
                arguments["file_path"] = at.file.into();
                arguments["line"] = (at.place.line + 1).into();
                arguments["character"] = (at.place.character + 1).into();
            }
            arguments
        };
        let session = step
            .session
            .as_ref()
            .map(|SessionSpec { cwd }| json!({"cwd": cwd}));
        let params = to_value(&ToolParams {
            name: step.name.clone(),
            arguments,
            session,
        });
        self.call(&step.r#as, "tool", &step.name, params).await;
        Ok(())
    }

    async fn turn(&mut self, step: &TurnStep) {
        let id = step.session.as_deref().unwrap_or(MAIN);
        let session = self.scenario.sessions.get(id);
        let session = session.unwrap_or(&self.scenario.session);
        let params = to_value(&TurnParams {
            prompt: step.prompt.clone(),
            replies: step.replies.iter().map(to_value).collect(),
            session: json!({"id": id, "cwd": session.cwd}),
        });
        self.call(&step.r#as, "turn", "turn", params).await;
    }

    /// The last request before a turn, in the same session.
    pub(super) fn before(&self, name: &str) -> Option<TurnRequest> {
        let turn = self.calls.get(name)?;
        let session = &turn.params["session"]["id"];
        let earlier = self.calls.iter().take_while(|(other, _)| *other != name);
        let mut before = None;
        for (other, called) in earlier {
            let same = called.method == "turn" && called.params["session"]["id"] == *session;
            let settled = self
                .settled
                .get(other)
                .and_then(|settled| settled.as_ref().ok());
            if same && let Some(last) = settled.and_then(requests::last) {
                before = Some(last);
            }
        }
        before
    }

    async fn cancel(&mut self, step: &CancelStep) -> Result<(), Stop> {
        let (name, reason) = match step {
            CancelStep::Name(name) => (name, "caller"),
            CancelStep::Reason(step) => (&step.name, step.reason.as_str()),
        };
        let Some(called) = self.calls.get(name) else {
            return Err(unknown(name));
        };
        let message = format!("{name} is given up ({reason})");
        self.recorder.emit(None, EventBody::note("cancel", message));
        if let Some(id) = called.id
            && self.tampering.is_none_or(Tampering::cancels)
        {
            self.subject.cancel(id, reason).await;
        }
        Ok(())
    }

    fn perform(&mut self, step: &PerformStep) -> Result<(), Stop> {
        self.control
            .perform(step.process, step.r#do.iter().cloned())
            .map_err(|error| Stop::Untestable(error.to_string()))
    }

    async fn wait(&mut self, pattern: &Pattern) -> Result<(), Stop> {
        self.waiting = describe(pattern);
        let mut fitting = 0;
        let nth = pattern.nth.unwrap_or(1).max(1);
        let mut at = 0;
        loop {
            while at < self.trace.events().len() {
                if self.trace.matches(at, pattern) {
                    fitting += 1;
                    if fitting == nth {
                        return Ok(());
                    }
                }
                at += 1;
            }
            self.more().await?;
        }
    }

    async fn dispose(&mut self, step: &AsStep) -> Result<(), Stop> {
        self.mounted = None;
        let name = step.r#as.as_deref().unwrap_or("dispose");
        self.call(name, "unmount", "unmount", json!({})).await;
        if step.r#as.is_none() {
            self.until_settled(name).await?;
            self.expect(name, &succeeds())?;
        }
        Ok(())
    }

    async fn mount_again(&mut self, step: &AsStep) -> Result<(), Stop> {
        let params = self.mount_params();
        let name = step.r#as.as_deref().unwrap_or("mount");
        self.mounted = Some(name.to_owned());
        self.call(name, "mount", "mount", params).await;
        if step.r#as.is_none() {
            self.until_settled(name).await?;
            self.expect(name, &succeeds())?;
        }
        Ok(())
    }

    async fn register(&mut self, step: &RegisterStep) -> Result<(), Stop> {
        let mut params = to_value(step);
        if let Value::Object(params) = &mut params {
            params.shift_remove("as");
            params.insert("op".to_owned(), "register".into());
        }
        self.controlled(step.r#as.as_deref(), "register", params)
            .await
    }

    async fn control(&mut self, step: &ControlStep) -> Result<(), Stop> {
        let mut params = step.parameters.clone();
        params.insert("op".to_owned(), step.op.clone().into());
        self.controlled(step.r#as.as_deref(), &step.op, params.into())
            .await
    }

    async fn controlled(
        &mut self,
        name: Option<&str>,
        op: &str,
        params: Value,
    ) -> Result<(), Stop> {
        let call = name.unwrap_or(op);
        self.call(call, "control", op, params).await;
        self.until_settled(call).await?;
        if name.is_none() {
            self.expect(call, &succeeds())?;
        }
        Ok(())
    }

    async fn expectations(&mut self, checks: &IndexMap<String, Outcome>) -> Result<(), Stop> {
        for (name, check) in checks {
            if !outcome::may_be_pending(check) {
                self.until_settled(name).await?;
            } else if !self.calls.contains_key(name) {
                return Err(unknown(name));
            }
        }
        for (name, check) in checks {
            self.expect(name, check)?;
        }
        Ok(())
    }

    /// What has to be known of a turn to judge what came of it.
    fn turn_before(&self, name: &str) -> Option<Turn> {
        let called = self
            .calls
            .get(name)
            .filter(|called| called.method == "turn")?;
        Some(Turn {
            replies: called.params["replies"].as_array().map_or(0, Vec::len),
            before: self.before(name),
        })
    }

    pub(super) fn expect(&mut self, name: &str, check: &Outcome) -> Result<(), Stop> {
        let context = Context {
            places: &self.stage.places,
            markers: &self.stage.markers,
            foreign: self.setup.foreign,
            settled: &self.settled,
            turn: self.turn_before(name),
        };
        let settled = self.settled.get(name);
        outcome::judge(check, settled, &context).map_err(|mismatch| {
            Stop::Failed(Failure {
                clauses: check.clauses.clone(),
                message: format!("{name}: {}", outcome::told(settled, &context)),
                expected: mismatch.expected,
                got: mismatch.got,
                seq: self.calls.get(name).and_then(|called| called.seq),
            })
        })
    }
}
