//! What a query costs, against the floor.
//!
//! The floor is a bare blocking client: it resolves and reads the file, writes `didOpen`, the
//! request and `didClose`, and parses the answer; it checks nothing, queues nothing, and could not
//! be cancelled. Both talk to the same fake server, in blocks that alternate within one run, and
//! everything is pinned to one core, so that what counts is the ratio and not the machine.
//!
//! ```text
//! cargo bench --bench transient              # everything
//! cargo bench --bench transient -- warm      # only the parts whose name holds "warm"
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures"
)]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_fs::LocalFileSystem;
use dsh_kernel::Cancel;
use dsh_lsp::{LspProvider, Operation, Position, ProviderQuery, QueryResult};
use dsh_lsp_stdio::{ServerConfig, StdioProvider};
use dsh_subprocess::LocalSubprocess;
use serde_json::{Value, json};

const LANGUAGE: &str = "plain";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, directory, count] = arguments.as_slice()
        && flag == "--resident"
    {
        return resident_child(Path::new(directory), count.parse().expect("a count"));
    }
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    support::pin_to_one_core();

    println!(
        "{:<34} {:>10} {:>10} {:>7}  at most",
        "", "bare", "host", "ratio"
    );
    if wanted("warm 2-line file") {
        let (bare, host) = warm(&small_file(), &hover_script("number"), 40, 500);
        ratio_row("warm 2-line file, median", bare.median, host.median, 2.5);
        ratio_row("warm 2-line file, p95", bare.p95, host.p95, 3.0);
    }
    if wanted("1 MB document") {
        let (bare, host) = warm(
            &"let x = 1; // fill\n".repeat(55_000),
            &hover_script("number"),
            20,
            10,
        );
        ratio_row("1 MB document, median", bare.median, host.median, 1.5);
    }
    if wanted("15.9 MB hover") {
        let (bare, host) = warm(
            &small_file(),
            &hover_script(&"lorem ipsum ".repeat(1_325_000)),
            10,
            3,
        );
        ratio_row("15.9 MB hover, median", bare.median, host.median, 2.5);
    }
    if wanted("10000 references") {
        let (bare, host) = warm_with(
            &small_file(),
            &references_script(10_000),
            20,
            5,
            Operation::FindReferences,
        );
        difference_row(
            "10000 references, over bare",
            bare.median,
            host.median,
            Duration::from_millis(5),
        );
    }
    if wanted("first answer") {
        let (bare, host) = first_answer(40);
        difference_row(
            "first answer of a fresh process",
            bare.median,
            host.median,
            Duration::from_millis(10),
        );
    }
    if wanted("resident") {
        resident(100_000);
    }
}

fn small_file() -> String {
    "let x = 1;\nlet y = x;\n".to_owned()
}

fn hover_script(text: &str) -> Value {
    json!([{"on": "textDocument/hover", "do": [
        {"reply": {"contents": {"kind": "markdown", "value": text}}}
    ]}])
}

fn references_script(count: usize) -> Value {
    let locations: Vec<Value> = (0..count)
        .map(|line| {
            json!({"uri": format!("file:///project/{}.x", line % 97), "range": {
                "start": {"line": line, "character": 4}, "end": {"line": line, "character": 9}}})
        })
        .collect();
    json!([{"on": "textDocument/references", "do": [{"reply": locations}]}])
}

/// One median and one 95th percentile.
#[derive(Clone, Copy)]
struct Figures {
    median: Duration,
    p95: Duration,
}

fn figures(mut samples: Vec<Duration>) -> Figures {
    samples.sort_unstable();
    Figures {
        median: samples[samples.len() / 2],
        p95: samples[samples.len() * 95 / 100],
    }
}

fn ratio_row(name: &str, bare: Duration, host: Duration, limit: f64) {
    let ratio = host.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{name:<34} {:>10} {:>10} {ratio:>6.2}x  {limit}x{}",
        micros(bare),
        micros(host),
        if ratio > limit { "  OVER" } else { "" }
    );
}

fn difference_row(name: &str, bare: Duration, host: Duration, limit: Duration) {
    let over = host.saturating_sub(bare);
    println!(
        "{name:<34} {:>10} {:>10} {:>7}  +{}{}",
        micros(bare),
        micros(host),
        format!("+{}", micros(over)),
        micros(limit),
        if over > limit { "  OVER" } else { "" }
    );
}

fn micros(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 10_000.0 {
        format!("{micros:.1} µs")
    } else {
        format!("{:.1} ms", micros / 1e3)
    }
}

fn warm(text: &str, script: &Value, rounds: usize, block: usize) -> (Figures, Figures) {
    warm_with(text, script, rounds, block, Operation::Hover)
}

/// Blocks of queries by either client against a server of its own, alternating.
fn warm_with(
    text: &str,
    script: &Value,
    rounds: usize,
    block: usize,
    operation: Operation,
) -> (Figures, Figures) {
    let bench = Bench::new(text, script);
    let mut bare = BareClient::start(&bench);
    let runtime = current_thread();
    let provider = runtime.block_on(bench.provider());
    bare.query(operation);
    runtime.block_on(bench.host_query(&provider, operation));
    let (mut bare_samples, mut host_samples) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for _ in 0..block {
            let start = Instant::now();
            bare.query(operation);
            bare_samples.push(start.elapsed());
        }
        runtime.block_on(async {
            for _ in 0..block {
                let start = Instant::now();
                bench.host_query(&provider, operation).await;
                host_samples.push(start.elapsed());
            }
        });
    }
    runtime.block_on(async { provider.dispose().await.expect("the fake server ends") });
    bare.stop();
    (figures(bare_samples), figures(host_samples))
}

/// From nothing to the first answer, by either client in turn.
fn first_answer(rounds: usize) -> (Figures, Figures) {
    let bench = Bench::new(&small_file(), &hover_script("number"));
    let runtime = current_thread();
    let (mut bare_samples, mut host_samples) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let mut bare = BareClient::start(&bench);
        bare.query(Operation::Hover);
        bare_samples.push(start.elapsed());
        bare.stop();
        runtime.block_on(async {
            let provider = bench.provider().await;
            let start = Instant::now();
            bench.host_query(&provider, Operation::Hover).await;
            host_samples.push(start.elapsed());
            provider.dispose().await.expect("the fake server ends");
        });
    }
    (figures(bare_samples), figures(host_samples))
}

/// Resident memory of a process that holds nothing but the host, after many queries.
fn resident(count: usize) {
    let bench = Bench::new(&small_file(), &hover_script("number"));
    let output = Command::new(std::env::current_exe().expect("the path of this program"))
        .args([
            "--resident".as_ref(),
            bench.root.as_os_str(),
            count.to_string().as_ref(),
        ])
        .output()
        .expect("this program runs again");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
}

fn resident_child(root: &Path, count: usize) {
    let bench = Bench::at(root.to_owned());
    let runtime = current_thread();
    runtime.block_on(async {
        let provider = bench.provider().await;
        let mut early = 0;
        for done in 0..count {
            bench.host_query(&provider, Operation::Hover).await;
            if done == count / 10 {
                early = resident_kib();
            }
        }
        let late = resident_kib();
        println!(
            "{:<34} {:>10} {:>10} {:>7}  15.0 MB{}",
            format!("resident after {count} queries"),
            format!("{:.1} MB", kib_to_mb(early)),
            format!("{:.1} MB", kib_to_mb(late)),
            format!("+{} KiB", late.saturating_sub(early)),
            if kib_to_mb(late) > 15.0 { "  OVER" } else { "" }
        );
        provider.dispose().await.expect("the fake server ends");
    });
}

fn resident_kib() -> u64 {
    fs::read_to_string("/proc/self/status")
        .expect("proc is mounted")
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .expect("the kernel reports VmRSS")
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn kib_to_mb(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A workspace with one file, and a script for the fake server beside it.
struct Bench {
    root: PathBuf,
    _owned: Option<tempfile::TempDir>,
}

impl Bench {
    fn new(text: &str, script: &Value) -> Self {
        let directory = tempfile::tempdir().expect("a temp folder");
        fs::create_dir(directory.path().join("workspace")).expect("a workspace");
        fs::write(directory.path().join("workspace/a.x"), text).expect("the source");
        fs::write(directory.path().join("script.json"), script.to_string()).expect("the script");
        Self {
            root: directory.path().to_owned(),
            _owned: Some(directory),
        }
    }

    fn at(root: PathBuf) -> Self {
        Self { root, _owned: None }
    }

    fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    fn command(&self) -> (String, Vec<String>) {
        let script = self.root.join("script.json").to_string_lossy().into_owned();
        (
            env!("CARGO_BIN_EXE_dsh-conform").to_owned(),
            vec!["fake-lsp".to_owned(), "--script".to_owned(), script],
        )
    }

    async fn provider(&self) -> Arc<StdioProvider> {
        let (command, args) = self.command();
        let mut config = ServerConfig::new(
            command,
            BTreeMap::from([(".x".to_owned(), LANGUAGE.to_owned())]),
        );
        config.args = args;
        let subprocess = Arc::new(LocalSubprocess::new(BTreeMap::new()));
        StdioProvider::new(
            "bench",
            config,
            Arc::new(LocalFileSystem::new()),
            subprocess,
        )
        .await
        .expect("the fake server is there")
    }

    async fn host_query(&self, provider: &StdioProvider, operation: Operation) {
        let query = ProviderQuery {
            operation,
            file_path: "a.x".to_owned(),
            position: Position {
                line: 1,
                character: 8,
            },
            workspace_root: self.workspace().to_string_lossy().into_owned(),
            language_id: LANGUAGE.to_owned(),
        };
        match provider
            .query(query, &Cancel::new())
            .await
            .expect("an answer")
        {
            QueryResult::Hover { hover } => assert!(hover.is_some(), "the fake server knows"),
            QueryResult::Locations { locations, .. } => assert!(!locations.is_empty()),
        }
    }
}

/// The floor.
struct BareClient {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    workspace: PathBuf,
    next_id: u64,
}

impl BareClient {
    fn start(bench: &Bench) -> Self {
        let (command, args) = bench.command();
        let mut child = Command::new(command)
            .args(args)
            .current_dir(bench.workspace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fake server starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut client = Self {
            child,
            stdin,
            stdout,
            workspace: bench.workspace(),
            next_id: 0,
        };
        let root = uri(&client.workspace);
        client.request(
            "initialize",
            &json!({"processId": null, "rootUri": root, "capabilities": {}}),
        );
        client.notify("initialized", &json!({}));
        client
    }

    fn query(&mut self, operation: Operation) {
        let path = fs::canonicalize(self.workspace.join("a.x")).expect("the source");
        let text = fs::read_to_string(&path).expect("the source");
        let uri = uri(&path);
        self.notify(
            "textDocument/didOpen",
            &json!({"textDocument": {"uri": uri, "languageId": LANGUAGE, "version": 1, "text": text}}),
        );
        let (method, mut params) = (
            match operation {
                Operation::FindReferences => "textDocument/references",
                _ => "textDocument/hover",
            },
            json!({"textDocument": {"uri": uri}, "position": {"line": 1, "character": 8}}),
        );
        if operation == Operation::FindReferences {
            params["context"] = json!({"includeDeclaration": true});
        }
        let answer = self.request(method, &params);
        assert!(answer.get("result").is_some(), "the fake server answers");
        self.notify(
            "textDocument/didClose",
            &json!({"textDocument": {"uri": uri}}),
        );
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send(&message);
        self.receive()
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let mut frame = String::with_capacity(body.len() + 32);
        write!(frame, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("memory");
        self.stdin
            .write_all(frame.as_bytes())
            .expect("the fake server reads");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stdout
                .read_line(&mut line)
                .expect("the fake server writes");
            match line.trim_end() {
                "" => break,
                header => {
                    if let Some(value) = header.strip_prefix("Content-Length: ") {
                        length = value.parse().expect("a length");
                    }
                }
            }
        }
        let mut body = vec![0; length];
        self.stdout.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn stop(mut self) {
        self.request("shutdown", &Value::Null);
        self.notify("exit", &Value::Null);
        self.child.wait().expect("the fake server ends");
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}
