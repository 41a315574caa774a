//! What a `read` near the end of a large file takes (RUN-8), in time and in memory.
//!
//! The file is made in the temporary folder and read once before, so that it comes from the
//! system's cache where that has the room. What is measured is the whole call, as a model makes it:
//! registry, tool, file system. Beside it stands a plain reading of the whole file by the standard
//! library, in the same run: the ratio of both is what holds on other machines too.
//!
//! ```text
//! cargo bench -p dsh-tool-fs --bench read             # 1 GB
//! cargo bench -p dsh-tool-fs --bench read -- 200      # 200 MB
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures"
)]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_fs::FsLocalPlugin;
use dsh_kernel::{Cancel, Kernel, Plugin};
use dsh_tool_fs::{ToolFsConfig, ToolFsPlugin};
use dsh_tools::{ToolCall, ToolRegistry, ToolResult, ToolsPlugin};
use serde_json::json;

/// Megabytes a second, at least.
const LEAST: f64 = 500.0;
/// How many times the plain reading of the whole file it may take, in the same run.
const MOST_TIMES: f64 = 8.0;
/// What the memory of the process may grow by, in kilobytes, whatever the size of the file.
const MOST_MEMORY: u64 = 16 * 1024;

const ROUNDS: usize = 5;

/// Lines are of the lengths that source code has.
const LINES: [&str; 4] = [
    "fn main() {",
    "    let answer = ask(\"what is it that you want to know?\").unwrap_or_default();",
    "",
    "    // A comment that says why this is done here and not where one would look for it first.",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if arguments.any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let size = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
        .map_or(Ok(1000), |size| size.parse::<u64>());
    let Ok(size @ 1..) = size else {
        eprintln!("the size is a number of megabytes: cargo bench --bench read -- 200");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if runtime.block_on(measure(size * 1_000_000)) {
        ExitCode::SUCCESS
    } else {
        eprintln!("beyond the limits");
        ExitCode::FAILURE
    }
}

/// Measures, and tells whether it was within the limits.
async fn measure(size: u64) -> bool {
    let folder = tempfile::tempdir().expect("a temp folder");
    let path = folder.path().join("large.rs");
    let (bytes, lines) = fill(&path, size);
    let kernel = Kernel::new();
    let plugins: [Arc<dyn Plugin>; 3] = [
        Arc::new(ToolsPlugin),
        Arc::new(FsLocalPlugin::new()),
        Arc::new(ToolFsPlugin::new(ToolFsConfig::default())),
    ];
    for plugin in plugins {
        kernel.mount(plugin).await.expect("mounted");
    }
    let tools = kernel.service::<ToolRegistry>().expect("mounted");
    let before = peak_memory();
    read(&tools, &path, lines).await;
    let (mut times, mut plain) = (Vec::new(), Vec::new());
    // One after the other, so that what else the machine does falls on both.
    for _ in 0..ROUNDS {
        let start = Instant::now();
        read(&tools, &path, lines).await;
        times.push(start.elapsed());
        let start = Instant::now();
        assert_eq!(read_plainly(&path), bytes);
        plain.push(start.elapsed());
    }
    times.sort_unstable();
    plain.sort_unstable();
    let memory = peak_memory().zip(before).map(|(now, before)| now - before);
    kernel.dispose().await.expect("disposed");
    report(bytes, times[ROUNDS / 2], plain[ROUNDS / 2], memory)
}

/// Writes whole lines until the file has the size, and tells its size and how many there are.
fn fill(path: &Path, size: u64) -> (u64, u64) {
    let block: String = LINES
        .iter()
        .flat_map(|line| [*line, "\n"])
        .cycle()
        .take(80_000)
        .collect();
    let mut file = std::fs::File::create(path).expect("made");
    let (mut bytes, mut lines) = (0, 0);
    while bytes < size {
        file.write_all(block.as_bytes())
            .expect("room in the temporary folder");
        bytes += block.len() as u64;
        lines += 40_000;
    }
    (bytes, lines)
}

/// The last twenty lines.
async fn read(tools: &ToolRegistry, path: &Path, lines: u64) -> ToolResult {
    let call = ToolCall {
        id: "1".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"file_path": path, "offset": lines - 30, "limit": 20}),
    };
    let result = tools.call(call, None, Cancel::new()).await;
    assert!(!result.is_error, "{}", result.text());
    result
}

/// Reads the whole file as the standard library does, in pieces of 64 KiB, and does nothing with it.
fn read_plainly(path: &Path) -> u64 {
    let mut file = std::fs::File::open(path).expect("there");
    let mut piece = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut piece).expect("read") {
            0 => return bytes,
            read => bytes += read as u64,
        }
        std::hint::black_box(&piece);
    }
}

/// The most memory that the process has had, in kilobytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn report(bytes: u64, time: Duration, plain: Duration, memory: Option<u64>) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let megabytes = bytes as f64 / 1e6;
    let speed = megabytes / time.as_secs_f64();
    println!("file                 {megabytes:>10.0} MB");
    println!("read near its end    {:>10.0} ms", time.as_secs_f64() * 1e3);
    println!("speed                {speed:>10.0} MB/s, at least {LEAST}");
    let times = time.as_secs_f64() / plain.as_secs_f64();
    println!(
        "plain read           {:>10.0} ms",
        plain.as_secs_f64() * 1e3
    );
    println!("times the plain read {times:>10.1}, at most {MOST_TIMES}");
    match memory {
        Some(memory) => {
            println!("memory it took       {memory:>10} kB, at most {MOST_MEMORY}");
        }
        None => println!("memory it took       not told by this system"),
    }
    speed >= LEAST && times <= MOST_TIMES && memory.is_none_or(|memory| memory <= MOST_MEMORY)
}
