//! What a subject is asked to mount.

use std::io;
use std::path::Path;

use dsh_fake_lsp::{Control, FakeServer, Script};
use serde_json::{Map, Value, json};

use super::Tampering;
use super::fill::Places;
use crate::Profile;
use crate::format::{Mounted, Scenario};
use crate::subject::MountParams;

/// The variable by which the processes of a case are found; its value is the case's folder.
pub(crate) const MARK: &str = "CONFORM_CASE";

/// What the fake servers of a case are started with.
pub(crate) struct Surroundings<'a> {
    pub(crate) places: &'a Places,
    pub(crate) control: &'a Control,
    /// The arguments that make the program a fake server.
    pub(crate) subcommand: &'a str,
    /// `PATH` of the harness.
    pub(crate) path: &'a str,
    pub(crate) tampering: Option<&'a dyn Tampering>,
}

/// Puts together what a scenario, whose templates are filled in, asks for.
pub(crate) fn params(scenario: &Scenario, around: &Surroundings<'_>) -> io::Result<MountParams> {
    let host = if !has_servers(scenario) {
        Value::Null
    } else if let Some(whole) = &scenario.configuration {
        let mut whole = whole.clone();
        around.complete(&mut whole, &scenario.server)?;
        whole
    } else {
        let mut servers = Map::new();
        if scenario.servers.is_empty() {
            let default = json!({"extensionToLanguage": {".ts": "typescript"}});
            let entry = around.server(default, "fake", &scenario.host, &scenario.server)?;
            servers.insert("fake".to_owned(), entry);
        }
        for (id, spec) in &scenario.servers {
            let entry = around.server(json!({}), id, &spec.host, &spec.server)?;
            servers.insert(id.clone(), entry);
        }
        json!({"servers": servers})
    };
    let instructions = scenario.instructions.clone();
    Ok(MountParams {
        host,
        tool: if has_servers(scenario) {
            scenario.tool.clone().into()
        } else {
            Value::Null
        },
        tools: tools(scenario),
        instructions: instructions.map_or(Value::Null, Value::Object),
        session: json!({"cwd": scenario.session.cwd}),
        environment: environment(scenario, around),
    })
}

/// Whether the case is about the loop, which needs no server and has tools for files.
fn of_the_loop(scenario: &Scenario) -> bool {
    matches!(scenario.profile, Profile::Runtime | Profile::Instructions)
}

/// Whether there are language servers, and the tool that asks them.
fn has_servers(scenario: &Scenario) -> bool {
    !of_the_loop(scenario)
        || scenario.configuration.is_some()
        || !scenario.servers.is_empty()
        || !scenario.host.is_empty()
        || !scenario.tool.is_empty()
        || scenario.server != Script::default()
}

fn tools(scenario: &Scenario) -> Value {
    let given = scenario.tools.clone().unwrap_or_default();
    let config = |mounted: &Option<Mounted>, usually: bool| match mounted {
        Some(mounted) => mounted.config(),
        None => Mounted::Plain(usually).config(),
    };
    let files = config(&given.files, of_the_loop(scenario));
    let code_mode = config(&given.code_mode, false);
    if files.is_null() && code_mode.is_null() && !given.read_before_write {
        return Value::Null;
    }
    json!({
        "files": files,
        "readBeforeWrite": given.read_before_write,
        "codeMode": code_mode,
    })
}

fn environment(scenario: &Scenario, around: &Surroundings<'_>) -> Map<String, Value> {
    let root = around.places.root.display().to_string();
    let mut environment = Map::new();
    environment.insert("PATH".to_owned(), around.path.into());
    environment.insert(MARK.to_owned(), root.clone().into());
    environment.insert("TMPDIR".to_owned(), format!("{root}/tmp").into());
    if of_the_loop(scenario) {
        // What lies in the home folder of whoever runs the suite is nobody's business.
        environment.insert("HOME".to_owned(), format!("{root}/home").into());
    }
    for (name, value) in &scenario.environment {
        environment.insert(name.clone(), value.clone().into());
    }
    environment
}

impl Surroundings<'_> {
    /// The configuration of one server.
    fn server(
        &self,
        mut entry: Value,
        id: &str,
        host: &Map<String, Value>,
        script: &Script,
    ) -> io::Result<Value> {
        entry["command"] = self.places.fake.display().to_string().into();
        entry["args"] = self.arguments(script, id)?.into();
        entry["shutdownTimeoutMs"] = 5000.into();
        entry["killGraceMs"] = 2000.into();
        if let Value::Object(entry) = &mut entry {
            entry.extend(host.clone());
        }
        self.tamper(&mut entry);
        Ok(entry)
    }

    /// Completes a configuration that the scenario wrote whole: where a command is the fake
    /// server's program, its arguments make it one, and those that are given follow them.
    fn complete(&self, configuration: &mut Value, script: &Script) -> io::Result<()> {
        let fake = self.places.fake.display().to_string();
        let Some(Value::Object(servers)) = configuration.get_mut("servers") else {
            return Ok(());
        };
        for entry in servers.values_mut() {
            if entry.get("command").and_then(Value::as_str) != Some(&fake) {
                continue;
            }
            let mut args = self.arguments(script, "fake")?;
            match entry.get("args") {
                None => {}
                Some(Value::Array(given)) => {
                    args.push("--".into());
                    args.extend(given.iter().cloned());
                }
                // Arguments that are none are what the scenario is about.
                Some(_) => continue,
            }
            entry["args"] = args.into();
            self.tamper(entry);
        }
        Ok(())
    }

    /// The arguments of a fake server with this script. It is always in a file, so that no message
    /// that quotes a command quotes the script.
    fn arguments(&self, script: &Script, id: &str) -> io::Result<Vec<Value>> {
        FakeServer::from(script.clone())
            .check()
            .map_err(io::Error::other)?;
        // An id may be anything; the name of a file may not.
        let name: String = id
            .chars()
            .map(|char| if char.is_alphanumeric() { char } else { '-' })
            .take(40)
            .collect();
        let path = self.places.root.join(format!("{name}.script.json"));
        std::fs::write(&path, serde_json::to_string(script)?)?;
        let path = path.display().to_string();
        let args = [
            self.subcommand,
            "--script",
            &path,
            "--control",
            self.control.address(),
        ];
        Ok(args.into_iter().map(Value::from).collect())
    }

    /// Has a tampering stand before a server; what is no fake server is left alone, since it is
    /// there for what is wrong with it.
    fn tamper(&self, entry: &mut Value) {
        let Some(tampering) = self.tampering else {
            return;
        };
        let program = entry["command"].as_str().map(str::to_owned);
        let args: Option<Vec<String>> = entry["args"].as_array().and_then(|args| {
            args.iter()
                .map(|arg| arg.as_str().map(str::to_owned))
                .collect()
        });
        let (Some(program), Some(args)) = (program, args) else {
            return;
        };
        if Path::new(&program) != self.places.fake {
            return;
        }
        let whole = std::iter::once(program).chain(args).collect();
        let mut command = tampering.command(whole).into_iter();
        if let Some(program) = command.next() {
            entry["command"] = program.into();
            entry["args"] = command.collect::<Vec<_>>().into();
        }
    }
}
