//! What a subject is asked to mount.

use std::io;
use std::path::Path;

use dsh_fake_lsp::{Control, FakeCommand, FakeServer, Script};
use serde_json::{Map, Value, json};

use super::Tampering;
use super::fill::Places;
use crate::format::Scenario;
use crate::subject::MountParams;

/// The variable by which the processes of a case are found; its value is the case's folder.
pub(crate) const MARK: &str = "CONFORM_CASE";

/// What is mounted, and what has to live as long as it is.
pub(crate) struct Mounting {
    pub(crate) params: MountParams,
    /// The scripts that are too long for an argument lie in files that go with these.
    _commands: Vec<FakeCommand>,
}

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

impl Mounting {
    /// Puts together what a scenario, whose templates are filled in, asks for.
    pub(crate) fn new(scenario: &Scenario, around: &Surroundings<'_>) -> io::Result<Self> {
        let mut commands = Vec::new();
        let host = match &scenario.configuration {
            Some(whole) => {
                let mut whole = whole.clone();
                around.complete(&mut whole, &scenario.server, &mut commands)?;
                whole
            }
            None => {
                let mut servers = Map::new();
                if scenario.servers.is_empty() {
                    let default = json!({"extensionToLanguage": {".ts": "typescript"}});
                    let server = (&scenario.host, &scenario.server);
                    let entry = around.server(default, server, &mut commands)?;
                    servers.insert("fake".to_owned(), entry);
                }
                for (id, spec) in &scenario.servers {
                    let server = (&spec.host, &spec.server);
                    let entry = around.server(json!({}), server, &mut commands)?;
                    servers.insert(id.clone(), entry);
                }
                json!({"servers": servers})
            }
        };
        let instructions = scenario.instructions.clone();
        Ok(Self {
            params: MountParams {
                host,
                tool: scenario.tool.clone().into(),
                instructions: instructions.map_or(Value::Null, Value::Object),
                session: json!({"cwd": scenario.session.cwd}),
                environment: environment(scenario, around),
            },
            _commands: commands,
        })
    }
}

fn environment(scenario: &Scenario, around: &Surroundings<'_>) -> Map<String, Value> {
    let root = around.places.root.display().to_string();
    let mut environment = Map::new();
    environment.insert("PATH".to_owned(), around.path.into());
    environment.insert(MARK.to_owned(), root.clone().into());
    environment.insert("TMPDIR".to_owned(), format!("{root}/tmp").into());
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
        (host, script): (&Map<String, Value>, &Script),
        commands: &mut Vec<FakeCommand>,
    ) -> io::Result<Value> {
        let command = self.fake(script, &[])?;
        entry["command"] = command.program.display().to_string().into();
        entry["args"] = command.args.clone().into();
        entry["shutdownTimeoutMs"] = 5000.into();
        entry["killGraceMs"] = 2000.into();
        commands.push(command);
        if let Value::Object(entry) = &mut entry {
            entry.extend(host.clone());
        }
        self.tamper(&mut entry);
        Ok(entry)
    }

    /// Completes a configuration that the scenario wrote whole: where a command is the fake
    /// server's program, its arguments make it one, and those that are given follow them.
    fn complete(
        &self,
        configuration: &mut Value,
        script: &Script,
        commands: &mut Vec<FakeCommand>,
    ) -> io::Result<()> {
        let fake = self.places.fake.display().to_string();
        let Some(Value::Object(servers)) = configuration.get_mut("servers") else {
            return Ok(());
        };
        for entry in servers.values_mut() {
            if entry.get("command").and_then(Value::as_str) != Some(&fake) {
                continue;
            }
            let given = match entry.get("args") {
                None => Some(Vec::new()),
                Some(Value::Array(args)) => args
                    .iter()
                    .map(|arg| arg.as_str().map(str::to_owned))
                    .collect(),
                Some(_) => None,
            };
            // Arguments that are none are what the scenario is about.
            let Some(given) = given else { continue };
            let command = self.fake(script, &given)?;
            entry["args"] = command.args.clone().into();
            commands.push(command);
            self.tamper(entry);
        }
        Ok(())
    }

    fn fake(&self, script: &Script, args: &[String]) -> io::Result<FakeCommand> {
        let mut server = FakeServer::from(script.clone())
            .subcommand(self.subcommand)
            .control(self.control);
        for arg in args {
            server = server.arg(arg);
        }
        server.command(&self.places.fake)
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
        let argv = std::iter::once(program).chain(args).collect();
        let mut argv = tampering.command(argv).into_iter();
        if let Some(program) = argv.next() {
            entry["command"] = program.into();
            entry["args"] = argv.collect::<Vec<_>>().into();
        }
    }
}
