//! What the types of a scenario do not say.

mod names;
mod outcomes;
mod places;
mod server;
mod templates;
mod turns;

use dsh_fake_lsp::Script;

pub(crate) use turns::MAIN;

use super::diagnostic::{Severity, nearest};
use super::expand::Wrong;
use super::node::{Node, Segment, way};
use super::{Count, End, Outcome, Pattern, Scenario, Step, Wire};
use crate::{Clauses, UNNUMBERED_RULES};

/// Everything wrong with a case; `root` is the document it was read from, matrix filled in.
pub(super) fn check(scenario: &Scenario, root: &Node) -> Vec<(Severity, Wrong)> {
    let mut checker = Checker {
        scenario,
        root,
        found: Vec::new(),
    };
    checker.whole();
    checker.clauses();
    checker.names();
    checker.places();
    checker.outcomes();
    checker.turns();
    checker.patterns();
    checker.templates();
    checker.servers();
    checker.found
}

/// Methods of LSP that a client sends, by their short names where those are what `wire` has.
const CLIENT_METHODS: [&str; 74] = [
    "initialize",
    "initialized",
    "shutdown",
    "exit",
    "$/cancelRequest",
    "$/progress",
    "$/setTrace",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
    "codeAction/resolve",
    "codeLens/resolve",
    "completionItem/resolve",
    "documentLink/resolve",
    "inlayHint/resolve",
    "notebookDocument/didChange",
    "notebookDocument/didClose",
    "notebookDocument/didOpen",
    "notebookDocument/didSave",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/colorPresentation",
    "textDocument/completion",
    "textDocument/declaration",
    "textDocument/definition",
    "textDocument/diagnostic",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/didOpen",
    "textDocument/didSave",
    "textDocument/documentColor",
    "textDocument/documentHighlight",
    "textDocument/documentLink",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/hover",
    "textDocument/implementation",
    "textDocument/inlayHint",
    "textDocument/inlineCompletion",
    "textDocument/inlineValue",
    "textDocument/linkedEditingRange",
    "textDocument/moniker",
    "textDocument/onTypeFormatting",
    "textDocument/prepareCallHierarchy",
    "textDocument/prepareRename",
    "textDocument/prepareTypeHierarchy",
    "textDocument/rangeFormatting",
    "textDocument/rangesFormatting",
    "textDocument/references",
    "textDocument/rename",
    "textDocument/selectionRange",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
    "textDocument/semanticTokens/range",
    "textDocument/signatureHelp",
    "textDocument/typeDefinition",
    "textDocument/willSave",
    "textDocument/willSaveWaitUntil",
    "typeHierarchy/subtypes",
    "typeHierarchy/supertypes",
    "window/workDoneProgress/cancel",
    "workspace/diagnostic",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWatchedFiles",
    "workspace/didChangeWorkspaceFolders",
    "workspace/didCreateFiles",
    "workspace/didDeleteFiles",
    "workspace/didRenameFiles",
    "workspace/executeCommand",
    "workspace/symbol",
    "workspace/willCreateFiles",
    "workspace/willDeleteFiles",
    "workspace/willRenameFiles",
    "workspaceSymbol/resolve",
];

struct Checker<'a> {
    scenario: &'a Scenario,
    root: &'a Node,
    found: Vec<(Severity, Wrong)>,
}

/// Puts two ways together.
fn join(start: &[Segment], rest: &[Segment]) -> Vec<Segment> {
    [start, rest].concat()
}

/// What is done with a pattern, its way, and the number of the step it stands in.
type Visit<'v, C> = dyn FnMut(&mut C, &[Segment], &Pattern, Option<usize>) + 'v;

impl<'a> Checker<'a> {
    fn error(&mut self, way: &[Segment], reason: impl Into<String>) {
        self.suggest(way, reason, None);
    }

    fn suggest(&mut self, way: &[Segment], reason: impl Into<String>, name: Option<String>) {
        let wrong = Wrong::new(self.root.place_of(way), reason).or(name);
        self.found.push((Severity::Error, wrong));
    }

    fn at_key(&mut self, way: &[Segment], reason: impl Into<String>, name: Option<String>) {
        let wrong = Wrong::new(self.root.key_of(way), reason).or(name);
        self.found.push((Severity::Error, wrong));
    }

    fn warn(&mut self, way: &[Segment], reason: impl Into<String>, name: Option<String>) {
        let wrong = Wrong::new(self.root.place_of(way), reason).or(name);
        self.found.push((Severity::Warning, wrong));
    }

    /// What concerns the members of the scenario as a whole.
    fn whole(&mut self) {
        let scenario = self.scenario;
        if scenario.title.trim().is_empty() {
            self.error(&way!["title"], "the title is empty");
        }
        if !demands(scenario) {
            let reason = "nothing is demanded, so every harness would pass: add a step `expect`, or \
                          `wire`, `messages`, `order`, `never`, `processes`, `ends` or `mount`";
            self.error(&way!["title"], reason);
        }
        if let Some(budget) = scenario.budget_ms
            && !(100..=120_000).contains(&budget)
        {
            let reason = format!("`budget_ms` is {budget}; it has to be from 100 to 120000");
            self.error(&way!["budget_ms"], reason);
        }
        for key in ["host", "servers"] {
            let given = match key {
                "host" => !scenario.host.is_empty(),
                _ => !scenario.servers.is_empty(),
            };
            if given && scenario.configuration.is_some() {
                let reason = format!("`configuration` takes the place of `{key}`; give one");
                self.at_key(&way![key], reason, None);
            }
        }
        if !scenario.servers.is_empty() {
            let single = [
                ("host", !scenario.host.is_empty()),
                ("server", scenario.server != Script::default()),
            ];
            for (key, given) in single {
                if given {
                    let reason =
                        format!("`{key}` is about the one server, in whose place `servers` stands");
                    self.at_key(&way![key], reason, None);
                }
            }
        }
        for (process, wire) in &scenario.wire {
            self.wire(*process, wire);
        }
        for (process, end) in &scenario.ends {
            let way = way!["ends", process.to_string().as_str()];
            self.process(&way, *process);
            if matches!(end, End::AnyOf(ends) if ends.is_empty()) {
                self.error(&way, "`any_of` is empty");
            }
        }
        if let Some(count) = &scenario.processes {
            self.count(&way!["processes"], count);
        }
    }

    /// A process that a scenario is about, which there has to be.
    fn process(&mut self, way: &[Segment], process: u32) {
        if process == 0 {
            return self.at_key(way, "processes are counted from 1", None);
        }
        let most = most_processes(self.scenario);
        if let Some(most) = most.filter(|most| u64::from(process) > *most) {
            let reason =
                format!("there is no process {process}: `processes` says that there are {most}");
            self.at_key(way, reason, None);
        }
    }

    fn count(&mut self, way: &[Segment], count: &Count) {
        if let Count::Between(bounds) = count {
            match (bounds.min, bounds.max) {
                (None, None) => self.error(way, "a count needs `min`, `max` or a number"),
                (Some(min), Some(max)) if min > max => {
                    self.error(way, format!("no count is at least {min} and at most {max}"));
                }
                _ => {}
            }
        }
    }

    fn wire(&mut self, process: u32, wire: &Wire) {
        let way = way!["wire", process.to_string().as_str()];
        self.process(&way, process);
        match wire {
            Wire::Exactly(messages) => self.messages_of_wire(&way, messages),
            Wire::AnyOf(any) => {
                if any.any_of.is_empty() {
                    self.error(&way, "`any_of` is empty");
                }
                for (at, messages) in any.any_of.iter().enumerate() {
                    self.messages_of_wire(&join(&way, &way!["any_of", at]), messages);
                }
            }
        }
    }

    fn messages_of_wire(&mut self, way: &[Segment], messages: &[String]) {
        for (at, message) in messages.iter().enumerate() {
            if message == "..." {
                continue;
            }
            let plain = message.strip_suffix('?').unwrap_or(message);
            for name in plain.split('|') {
                let known = |method: &&str| dsh_transcript::short_name(method) == name;
                if CLIENT_METHODS.iter().any(known) {
                    continue;
                }
                let names = CLIENT_METHODS
                    .iter()
                    .map(|method| dsh_transcript::short_name(method));
                let near = name.rsplit('/').next().unwrap_or(name);
                let reason = format!("`{name}` is the short name of no message that clients send");
                let near = nearest(near, names);
                self.suggest(&join(way, &way![at]), reason, near);
            }
        }
    }

    /// Clauses have to be there.
    fn clauses(&mut self) {
        let scenario = self.scenario;
        if scenario.clauses.is_empty() {
            self.error(&way!["clauses"], "a scenario judges at least one clause");
        }
        for (at, id) in scenario.clauses.iter().enumerate() {
            self.clause(&way!["clauses", at], id, &[]);
            if scenario.clauses[..at].contains(id) {
                self.error(&way!["clauses", at], format!("`{id}` is there twice"));
            }
        }
        for (at, id) in scenario.lenient.iter().enumerate() {
            self.clause(&way!["lenient", at], id, &[]);
        }
        for (at, declaration) in scenario.declares.iter().enumerate() {
            let way = way!["declares", at, "clause"];
            self.clause(&way, &declaration.clause, &UNNUMBERED_RULES);
            if let Some(process) = declaration.process {
                self.process(&way!["declares", at, "process"], process);
            }
        }
        for (at, message) in scenario.messages.iter().enumerate() {
            for (number, id) in message.clauses.iter().enumerate() {
                self.clause(&way!["messages", at, "clauses", number], id, &[]);
            }
        }
        self.each_outcome(&mut |checker, way, outcome| {
            for (number, id) in outcome.clauses.iter().enumerate() {
                checker.clause(&join(way, &way!["clauses", number]), id, &[]);
            }
        });
    }

    fn clause(&mut self, way: &[Segment], id: &str, besides: &[&str]) {
        if Clauses::embedded().get(id).is_some() || besides.contains(&id) {
            return;
        }
        let known = Clauses::embedded().iter().map(|clause| clause.id.as_str());
        let near = nearest(id, known.chain(besides.iter().copied()));
        self.suggest(way, format!("there is no clause `{id}`"), near);
    }

    /// Every outcome that is expected, with its way; those within `any_of` too.
    fn each_outcome(&mut self, visit: &mut dyn FnMut(&mut Self, &[Segment], &Outcome)) {
        let scenario = self.scenario;
        if let Some(outcome) = &scenario.mount {
            self.outcome_and_below(&way!["mount"], outcome, visit);
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            let Step::Expect(outcomes) = step else {
                continue;
            };
            for (name, outcome) in outcomes {
                let way = way!["steps", at, "expect", name.as_str()];
                self.outcome_and_below(&way, outcome, visit);
            }
        }
    }

    fn outcome_and_below(
        &mut self,
        way: &[Segment],
        outcome: &Outcome,
        visit: &mut dyn FnMut(&mut Self, &[Segment], &Outcome),
    ) {
        visit(self, way, outcome);
        for (at, one) in outcome.any_of.iter().enumerate() {
            self.outcome_and_below(&join(way, &way!["any_of", at]), one, visit);
        }
    }

    /// Every pattern, with its way, and the number of the step it stands in, if it does.
    fn each_pattern(&mut self, visit: &mut Visit<'_, Self>) {
        let scenario = self.scenario;
        for (at, step) in scenario.steps.iter().enumerate() {
            if let Step::Wait(pattern) = step {
                visit(self, &way!["steps", at, "wait"], pattern, Some(at));
            }
        }
        for (at, message) in scenario.messages.iter().enumerate() {
            visit(self, &way!["messages", at, "of"], &message.of, None);
        }
        for (key, patterns) in [
            ("order", &scenario.order),
            ("never", &scenario.never),
            ("requires", &scenario.requires),
        ] {
            for (at, pattern) in patterns.iter().enumerate() {
                visit(self, &way![key, at], pattern, None);
            }
        }
    }

    /// Every script, with its way.
    fn scripts(&self) -> Vec<(Vec<Segment>, &'a Script)> {
        let one = (way!["server"].to_vec(), &self.scenario.server);
        let several = self.scenario.servers.iter().map(|(id, spec)| {
            let way = way!["servers", id.as_str(), "server"].to_vec();
            (way, &spec.server)
        });
        std::iter::once(one).chain(several).collect()
    }
}

/// How many processes there are at most, where the scenario says so.
fn most_processes(scenario: &Scenario) -> Option<u64> {
    match scenario.processes.as_ref()? {
        Count::Exactly(count) => Some(*count),
        Count::Between(bounds) => bounds.max,
    }
}

/// Whether anything of the harness's doing can make the case fail, monitors and leftovers aside.
fn demands(scenario: &Scenario) -> bool {
    let by_a_step = scenario.steps.iter().any(|step| match step {
        Step::Expect(outcomes) => !outcomes.is_empty(),
        Step::Wait(_) => true,
        _ => false,
    });
    let by_events = !scenario.wire.is_empty()
        || !scenario.messages.is_empty()
        || !scenario.order.is_empty()
        || !scenario.never.is_empty()
        || !scenario.ends.is_empty();
    by_a_step || by_events || scenario.mount.is_some() || scenario.processes.is_some()
}
