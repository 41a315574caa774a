use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Fixture, told};

/// RUN-9, RUN-10: a file is made, with the directories on the way, and replaced.
#[tokio::test]
async fn a_write_makes_and_replaces() {
    let fixture = Fixture::new().await;
    let arguments = json!({"file_path": "a/b/c", "content": "é\r\n"});
    let result = fixture.call("write", arguments).await;
    assert_eq!(fixture.placed(&result), "Created /w/a/b/c with 4 bytes.");
    assert_eq!(
        result.value,
        Some(json!({"path": fixture.at("a/b/c"), "bytes": 4, "created": true}))
    );
    assert_eq!(fixture.bytes("a/b/c"), "é\r\n".as_bytes());
    assert_eq!(fixture.observed(), told("write", "a/b/c", "written"));
    let again = json!({"file_path": fixture.at("a/b/c"), "content": ""});
    let text = fixture.text("write", again).await;
    assert_eq!(text, "Replaced /w/a/b/c; it has 0 bytes now.");
    assert_eq!(fixture.bytes("a/b/c"), b"");
}

/// RUN-9
#[tokio::test]
async fn a_write_to_what_is_no_file_is_refused() {
    let fixture = Fixture::new().await;
    fixture.put("file", "x");
    for (given, code, words) in [
        (".", "FS_NOT_REGULAR", "is a directory; name a file in it"),
        (
            "new/",
            "FS_NOT_REGULAR",
            "\"new/\" names a directory by its slash at the end",
        ),
        ("/dev/null", "FS_NOT_REGULAR", "is a character device"),
        ("a\0", "FS_FAILED", "holds a NUL byte"),
    ] {
        let arguments = json!({"file_path": given, "content": "x"});
        let (found, text) = fixture.refusal("write", arguments).await;
        assert_eq!(found, code, "{text}");
        assert!(text.contains(words), "{text}");
    }
    let below = json!({"file_path": "file/below", "content": "x"});
    assert!(fixture.call("write", below).await.is_error);
    assert_eq!(fixture.bytes("file"), b"x");
    assert!(fixture.observed().is_empty());
    assert_eq!(
        std::fs::read_dir(fixture.path("")).expect("listed").count(),
        1
    );
}

/// RUN-9, RUN-10: one place is edited; mode bits, BOM and line ends stay.
#[tokio::test]
async fn an_edit_keeps_mode_bom_and_line_ends() {
    let fixture = Fixture::new().await;
    fixture.put("run.sh", "\u{FEFF}one\r\ntwo\r\n");
    let mode = std::fs::Permissions::from_mode(0o751);
    std::fs::set_permissions(fixture.path("run.sh"), mode).expect("set");
    let arguments = json!({
        "file_path": "run.sh", "old_string": "one\ntwo", "new_string": "1\n2\n3",
    });
    let result = fixture.call("edit", arguments).await;
    assert_eq!(
        fixture.placed(&result),
        "Edited /w/run.sh in 1 place, now at line 1."
    );
    assert_eq!(
        result.value,
        Some(json!({"path": fixture.at("run.sh"), "replacements": 1, "lines": [1]}))
    );
    let bytes = fixture.bytes("run.sh");
    assert_eq!(bytes, "\u{FEFF}1\r\n2\r\n3\r\n".as_bytes());
    let metadata = std::fs::metadata(fixture.path("run.sh")).expect("there");
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o751);
    assert_eq!(fixture.observed(), told("edit", "run.sh", "written"));
}

/// RUN-9
#[tokio::test]
async fn every_place_is_edited_on_request() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x\ny\nx\n");
    let arguments = json!({
        "file_path": "a", "old_string": "x", "new_string": "z", "replace_all": true,
    });
    let text = fixture.text("edit", arguments).await;
    assert_eq!(text, "Edited /w/a in 2 places, now at lines 1, 3.");
    assert_eq!(fixture.bytes("a"), b"z\ny\nz\n");
}

/// RUN-9: what cannot be edited says why and what to do, and nothing is lost.
#[tokio::test]
async fn an_edit_that_does_not_fit_says_why() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x\ny\n  x\n");
    fixture.put("big", vec![b'x'; 10 * 1024 * 1024 + 1]);
    for (path, old, code, words) in [
        (
            "a",
            "x",
            "FS_OLD_STRING_AMBIGUOUS",
            "old_string is in 2 places of \"/w/a\", at lines 1, 3; give more of the text around \
             the one that is meant, or set replace_all",
        ),
        (
            "a",
            "z",
            "FS_OLD_STRING_ABSENT",
            "old_string is nowhere in \"/w/a\"; read the file and copy the text exactly, white \
             space included",
        ),
        (
            "a",
            "  y\n",
            "FS_OLD_STRING_ABSENT",
            "old_string is nowhere in \"/w/a\"; its first line is there, at line 2, so compare \
             the white space and the lines that follow",
        ),
        (
            "a",
            "1: x\n2: y",
            "FS_OLD_STRING_ABSENT",
            "old_string is nowhere in \"/w/a\"; leave out the line numbers that read puts before \
             the lines",
        ),
        (
            "big",
            "x",
            "FS_TOO_LARGE",
            "\"/w/big\" is larger than maxEditBytes (10485760 bytes), which is the most that is \
             edited",
        ),
        (
            "b",
            "x",
            "FS_MISSING",
            "\"/w/b\" does not exist; its directory has \"a\", perhaps one of these was meant",
        ),
        (
            ".",
            "x",
            "FS_NOT_REGULAR",
            "\"/w\" is a directory; name a file in it",
        ),
    ] {
        let arguments = json!({"file_path": path, "old_string": old, "new_string": "new"});
        let refused = fixture.refusal("edit", arguments).await;
        assert_eq!(refused, (code.to_owned(), words.to_owned()));
    }
    assert_eq!(fixture.bytes("a"), b"x\ny\n  x\n");
    assert!(fixture.observed().is_empty());
}
