use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;

use dsh_fs::{FileSystem, FsTarget};
use dsh_tool_fs::ToolFsConfig;
use dsh_tools::{ContentBlock, ToolCall, ToolRegistry};
use serde_json::json;

use crate::support::{Fixture, told};

/// RUN-8: the canonical value and the envelope, for a relative path and an absolute one.
#[tokio::test]
async fn a_window_comes_in_its_envelope() {
    let fixture = Fixture::new().await;
    let text = (1..=75).fold(String::new(), |mut text, number| {
        let line = if number % 2 == 0 { "" } else { "text" };
        writeln!(text, "{line}").expect("written");
        text
    });
    fixture.put("README.md", text);
    let expected = "<path>/w/README.md</path>\n<type>file</type>\n<content>\n1: text\n2: \n\
                    3: text\n\n(Showing lines 1-3 of 75. Use offset=4 to continue.)\n</content>";
    for path in ["README.md".to_owned(), fixture.at("README.md")] {
        let arguments = json!({"file_path": path, "limit": 3});
        assert_eq!(fixture.text("read", arguments).await, expected);
    }
    let arguments = json!({"file_path": "./x/../README.md", "offset": 74, "limit": 2000});
    let result = fixture.call("read", arguments).await;
    assert_eq!(
        result.value,
        Some(json!({
            "path": fixture.at("README.md"),
            "offset": 74,
            "lines": [{"number": 74, "text": ""}, {"number": 75, "text": "text"}],
            "totalLines": 75,
        }))
    );
    assert!(matches!(&result.content[..], [ContentBlock::Text { .. }]));
    let footer = "\n\n(End of file. Total lines: 75.)\n</content>";
    assert!(result.text().ends_with(footer), "{}", result.text());
}

/// RUN-8
#[tokio::test]
async fn an_empty_file_is_a_success_without_lines() {
    let fixture = Fixture::new().await;
    fixture.put("empty", "");
    assert_eq!(
        fixture.text("read", json!({"file_path": "empty"})).await,
        "<path>/w/empty</path>\n<type>file</type>\n<content>\n\n\
         (End of file. Total lines: 0.)\n</content>"
    );
    assert_eq!(fixture.observed(), told("read", "empty", "read"));
    let refused = fixture
        .refusal("read", json!({"file_path": "empty", "offset": 2}))
        .await;
    assert_eq!(refused.0, "FS_OFFSET_BEYOND_END");
    assert!(
        refused.1.ends_with("is empty; use offset 1"),
        "{}",
        refused.1
    );
}

/// RUN-8: an offset beyond the end is an error that names the end, and nothing was observed.
#[tokio::test]
async fn an_offset_beyond_the_end_is_an_error() {
    let fixture = Fixture::new().await;
    fixture.put("two", "a\nb");
    for offset in [json!(3), json!(4.0), json!((1_u64 << 53) - 1)] {
        let arguments = json!({"file_path": "two", "offset": offset});
        let (code, text) = fixture.refusal("read", arguments).await;
        assert_eq!(code, "FS_OFFSET_BEYOND_END");
        let end = "\"/w/two\" has 2 lines; use an offset from 1 to 2";
        assert!(text.ends_with(end), "{text}");
    }
    assert!(fixture.observed().is_empty());
    let last = json!({"file_path": "two", "offset": 2.0});
    assert!(fixture.text("read", last).await.contains("\n2: b\n"));
}

/// RUN-8: output over 50 KiB is capped, and says with which offset to go on.
#[tokio::test]
async fn output_is_capped_and_says_so() {
    let fixture = Fixture::new().await;
    let line = "x".repeat(95);
    fixture.put("long", format!("{line}\n").repeat(1500));
    let text = fixture.text("read", json!({"file_path": "long"})).await;
    assert!(text.len() < 51 * 1024, "{}", text.len());
    let end = "(Output capped by its size. Showing lines 1-508 of 1500. Use offset=509 to \
               continue.)\n</content>";
    assert!(text.ends_with(end), "{}", &text[text.len() - 200..]);
    let next = json!({"file_path": "long", "offset": 509, "limit": 1});
    let next = fixture.text("read", next).await;
    assert!(next.contains("\n509: xxx"), "{next}");
}

/// RUN-8: large files, and files whose size says nothing, show the same as small ones.
#[tokio::test]
async fn a_streamed_file_shows_what_a_small_one_does() {
    let streaming = ToolFsConfig {
        stream_min_size: 0,
        ..ToolFsConfig::default()
    };
    let (small, streamed) = (Fixture::new().await, Fixture::with(streaming, false).await);
    let mut text = String::from("\u{FEFF}");
    for number in 0..40_000 {
        let end = if number % 3 == 0 { "\r\n" } else { "\n" };
        write!(text, "line {number} é中𝕏{end}").expect("written");
    }
    small.put("file", &text);
    streamed.put("file", &text);
    for offset in [1, 777, 39_000, 40_000] {
        let arguments = json!({"file_path": "file", "offset": offset});
        let shown = small.text("read", arguments.clone()).await;
        assert_eq!(shown, streamed.text("read", arguments).await);
    }
    let arguments = json!({"file_path": "/proc/self/status", "limit": 1});
    let shown = small.text("read", arguments).await;
    assert!(shown.contains("\n1: Name:"), "{shown}");
}

/// RUN-10: a missing file is a recorded absence and a failure that suggests what is near.
#[tokio::test]
async fn a_missing_file_records_absence_and_suggests_names() {
    let fixture = Fixture::new().await;
    for name in ["main.rs", "lib.rs", "README.md"] {
        fixture.put(name, "");
    }
    let odd = std::ffi::OsString::from_vec(b"main.r\xFF".to_vec());
    std::fs::write(fixture.path("").join(odd), "").expect("written");
    for (given, words) in [
        (
            "mian.rs",
            "\"/w/mian.rs\" does not exist; its directory has \"main.rs\", perhaps one of these \
             was meant",
        ),
        (
            "readme.txt",
            "\"/w/readme.txt\" does not exist; its directory has \"README.md\", perhaps one of \
             these was meant",
        ),
        ("quux", "\"/w/quux\" does not exist; check the path"),
        (
            "sub/main.rs",
            "\"/w/sub/main.rs\" does not exist; nor does the directory \"/w/sub\", check the path",
        ),
        (
            "~/main.rs",
            "\"/w/~/main.rs\" does not exist; ~ is not the home directory here, give the whole \
             path",
        ),
        (
            "main.rs/x",
            "\"/w/main.rs/x\" does not exist; nor does the directory \"/w/main.rs\", check the \
             path",
        ),
    ] {
        let refused = fixture.refusal("read", json!({"file_path": given})).await;
        assert_eq!(refused, ("FS_MISSING".to_owned(), words.to_owned()));
        assert_eq!(fixture.observed(), told("read", given, "absent"));
    }
}

/// RUN-8: what is no regular file is refused by its kind, and nothing is waited for.
#[tokio::test]
async fn what_is_no_file_is_refused_by_its_kind() {
    let fixture = Fixture::new().await;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).expect("bound");
    std::os::unix::fs::symlink(".", fixture.path("here")).expect("linked");
    std::os::unix::fs::symlink("loop", fixture.path("loop")).expect("linked");
    let long = "x/".repeat(5000);
    for (given, code, words) in [
        (
            "fifo",
            "FS_NOT_REGULAR",
            "is a FIFO; the file tools take regular files only",
        ),
        (
            "socket",
            "FS_NOT_REGULAR",
            "is a socket; the file tools take regular files only",
        ),
        (
            "/dev/zero",
            "FS_NOT_REGULAR",
            "is a character device; the file tools take",
        ),
        (".", "FS_NOT_REGULAR", "is a directory; name a file in it"),
        (
            "here",
            "FS_NOT_REGULAR",
            "is a directory; name a file in it",
        ),
        ("loop", "FS_FAILED", "its symbolic links form a loop"),
        ("a\0b", "FS_FAILED", "the path holds a NUL byte"),
        (long.as_str(), "FS_FAILED", "name too long"),
    ] {
        let refused = fixture.refusal("read", json!({"file_path": given})).await;
        assert_eq!(refused.0, code, "{}", refused.1);
        assert!(refused.1.contains(words), "{}", refused.1);
        assert!(refused.1.len() < 1000, "{} bytes", refused.1.len());
    }
    assert!(fixture.observed().is_empty());
}

/// RUN-8: text that is not quite UTF-8 is shown, binary files are refused.
#[tokio::test]
async fn what_is_no_text_is_refused_or_replaced() {
    let fixture = Fixture::new().await;
    fixture.put("latin", b"caf\xE9\n");
    fixture.put("binary", b"\x7FELF\0\0");
    fixture.put("wide", b"\xFF\xFEa\0");
    let shown = fixture.text("read", json!({"file_path": "latin"})).await;
    assert!(shown.contains("\n1: caf\u{FFFD}\n"), "{shown}");
    fixture.observed();
    for (given, words) in [
        ("binary", "is a binary file (NUL byte at offset 4)"),
        ("wide", "is UTF-16 text by its byte order mark"),
    ] {
        let (code, text) = fixture.refusal("read", json!({"file_path": given})).await;
        assert_eq!(code, "FS_NOT_TEXT");
        assert!(text.contains(words), "{text}");
    }
    assert!(fixture.observed().is_empty());
}

/// RUN-8: a relative path needs the session's directory; an absolute one does not.
#[tokio::test]
async fn a_session_without_a_directory_needs_absolute_paths() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x");
    for tool in ["read", "write", "edit"] {
        let arguments = match tool {
            "read" => json!({"file_path": "a"}),
            "write" => json!({"file_path": "a", "content": ""}),
            _ => json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
        };
        let result = fixture.call_in(None, tool, arguments).await;
        assert_eq!(result.code.as_deref(), Some("FS_CWD_REQUIRED"));
        let words = "\"a\" is a relative path, and the session has no working directory; give an \
                     absolute path";
        assert_eq!(result.text(), words);
    }
    let absolute = json!({"file_path": fixture.at("a")});
    assert!(!fixture.call_in(None, "read", absolute).await.is_error);
}

/// RUN-10: what is observed has the version that the file system tells, and the call.
#[tokio::test]
async fn a_read_tells_the_version_it_has_seen() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x");
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let recorder = std::sync::Arc::clone(&seen);
    let _subscription = fixture
        .kernel
        .events()
        .subscribe(move |event: &dsh_fs::FsObserved| {
            *recorder.lock().expect("whole") = Some(event.clone());
        });
    fixture.text("read", json!({"file_path": "a"})).await;
    let event = seen.lock().expect("whole").take().expect("told");
    assert_eq!(event.session.as_deref(), Some("s"));
    let fs = fixture.kernel.service::<dyn FileSystem>().expect("mounted");
    let target = FsTarget {
        path: fixture.path("a"),
        display_path: fixture.at("a"),
    };
    let stat = fs.stat(&target, &dsh_kernel::Cancel::new()).await;
    let version = stat.expect("there").version;
    assert_eq!(event.observation, dsh_fs::Observation::Present { version });
    assert_eq!(event.target, target);
}

/// RUN-1, RUN-5, RUN-13: three tools, which go with the plugin; reads may overlap, writes may not.
#[tokio::test]
async fn three_tools_come_and_go_with_the_plugin() {
    let fixture = Fixture::new().await;
    let tools = fixture.kernel.service::<ToolRegistry>().expect("mounted");
    let names: Vec<_> = tools.list().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names.len(), 3);
    for (name, overlaps) in [("read", true), ("write", false), ("edit", false)] {
        assert!(names.iter().any(|known| known == name));
        let call = ToolCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments: json!({"file_path": "a"}),
        };
        assert_eq!(tools.is_concurrency_safe(&call), overlaps);
    }
    fixture.kernel.dispose().await.expect("disposed");
    assert!(tools.list().is_empty());
}
