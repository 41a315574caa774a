use dsh_tool_fs::{ReadBeforeWriteConfig, ReadBeforeWritePlugin, ToolFsConfig, ToolFsPlugin};
use serde_json::{Value, json};

use crate::support::Fixture;

fn write(name: &str) -> Value {
    json!({"file_path": name, "content": "written"})
}

fn edit(name: &str) -> Value {
    json!({"file_path": name, "old_string": "text", "new_string": "words"})
}

#[track_caller]
fn check(refused: &(String, String), words: &str) {
    assert_eq!(refused.0, "FS_STALE", "{}", refused.1);
    assert!(refused.1.contains(words), "{}", refused.1);
}

/// RUN-10: a file that was not read is neither written nor edited, and one that was is.
#[tokio::test]
async fn a_file_is_read_before_it_is_written() {
    let fixture = Fixture::guarded().await;
    fixture.put("a", "text");
    for (tool, arguments) in [("write", write("a")), ("edit", edit("a"))] {
        let refused = fixture.refusal(tool, arguments).await;
        check(
            &refused,
            "was not read since this session was opened, and was not written; read it first",
        );
    }
    assert_eq!(fixture.bytes("a"), b"text");
    fixture.text("read", json!({"file_path": "a"})).await;
    fixture.text("edit", edit("a")).await;
    // Its own writes count as read.
    fixture.text("write", write("a")).await;
    fixture.text("write", write(&fixture.at("a"))).await;
    assert_eq!(fixture.bytes("a"), b"written");
}

/// RUN-10: a file that is not there needs no read, and one that comes in between is not lost.
#[tokio::test]
async fn a_new_file_needs_no_read() {
    let fixture = Fixture::guarded().await;
    fixture.text("write", write("new")).await;
    fixture
        .text(
            "edit",
            json!({"file_path": "new", "old_string": "written", "new_string": "x"}),
        )
        .await;
    let missing = fixture.refusal("read", json!({"file_path": "late"})).await;
    assert_eq!(missing.0, "FS_MISSING");
    fixture.put("late", "text");
    for (tool, arguments) in [("write", write("late")), ("edit", edit("late"))] {
        let refused = fixture.refusal(tool, arguments).await;
        check(&refused, "exists by now, unlike when it was looked for");
    }
    assert_eq!(fixture.bytes("late"), b"text");
}

/// RUN-10: a file that was changed or removed since is stale until it is read again.
#[tokio::test]
async fn a_file_that_has_changed_is_stale() {
    let fixture = Fixture::guarded().await;
    fixture.put("a", "text");
    fixture.text("read", json!({"file_path": "a"})).await;
    fixture.put("a", "text of somebody else");
    for (tool, arguments) in [("write", write("a")), ("edit", edit("a"))] {
        let refused = fixture.refusal(tool, arguments).await;
        check(
            &refused,
            "has changed since it was read, and was not written; read it again",
        );
    }
    assert_eq!(fixture.bytes("a"), b"text of somebody else");
    fixture.text("read", json!({"file_path": "a"})).await;
    fixture.text("edit", edit("a")).await;

    std::fs::remove_file(fixture.path("a")).expect("removed");
    let refused = fixture.refusal("write", write("a")).await;
    check(&refused, "was removed since it was read");
    assert_eq!(fixture.refusal("edit", edit("a")).await.0, "FS_MISSING");
    assert!(!fixture.path("a").exists());
    fixture.refusal("read", json!({"file_path": "a"})).await;
    fixture.text("write", write("a")).await;
}

/// RUN-10: what one session has read another has not.
#[tokio::test]
async fn two_sessions_read_for_themselves() {
    let fixture = Fixture::guarded().await;
    fixture.put("a", "text");
    let (one, two) = (fixture.session("one"), fixture.session("two"));
    let read = json!({"file_path": "a"});
    assert!(
        !fixture
            .call_in(Some(one.clone()), "read", read.clone())
            .await
            .is_error
    );
    let refused = fixture
        .call_in(Some(two.clone()), "write", write("a"))
        .await;
    assert_eq!(refused.code.as_deref(), Some("FS_STALE"));
    assert!(
        !fixture
            .call_in(Some(two.clone()), "read", read)
            .await
            .is_error
    );
    assert!(
        !fixture
            .call_in(Some(one), "write", write("a"))
            .await
            .is_error
    );
    let refused = fixture.call_in(Some(two), "write", write("a")).await;
    assert_eq!(refused.code.as_deref(), Some("FS_STALE"));
}

/// RUN-10: a file is the same by whatever path it is named, through links of files and of folders.
#[tokio::test]
async fn a_file_that_was_read_by_one_path_is_known_by_every_other() {
    for (read, written) in [
        ("real/a", "link"),
        ("link", "real/a"),
        ("folder/a", "real/a"),
        ("real/a", "folder/a"),
        ("link", "folder/a"),
    ] {
        let fixture = Fixture::guarded().await;
        std::fs::create_dir(fixture.at("real")).unwrap();
        fixture.put("real/a", "text");
        std::os::unix::fs::symlink("real", fixture.at("folder")).unwrap();
        std::os::unix::fs::symlink("real/a", fixture.at("link")).unwrap();
        fixture.text("read", json!({"file_path": read})).await;
        fixture.text("edit", edit(written)).await;
        // What changed by one path is stale by every other.
        fixture.text("read", json!({"file_path": read})).await;
        fixture.put("real/a", "changed behind it");
        let refused = fixture.refusal("write", write(written)).await;
        check(&refused, "changed since it was read");
        assert_eq!(fixture.bytes("real/a"), b"changed behind it");
    }
    // A file that is made through a link is known by its own name.
    let fixture = Fixture::guarded().await;
    std::os::unix::fs::symlink("new", fixture.at("link")).unwrap();
    fixture.text("write", write("link")).await;
    fixture.text("write", write("new")).await;
}

/// RUN-10: a window of a file counts as the file.
#[tokio::test]
async fn a_file_of_which_a_part_was_read_may_be_replaced() {
    let fixture = Fixture::guarded().await;
    fixture.put("a", "1\n2\n3\n");
    let part = json!({"file_path": "a", "offset": 2, "limit": 1});
    fixture.text("read", part).await;
    fixture.text("write", write("a")).await;
    assert_eq!(fixture.bytes("a"), b"written");
}

/// RUN-10: only the file tools make observations: what somebody else reads is not read.
#[tokio::test]
async fn without_the_policy_nothing_has_to_be_read() {
    let fixture = Fixture::new().await;
    fixture.put("a", "text");
    fixture.text("edit", edit("a")).await;
    fixture.text("write", write("a")).await;
}

/// RUN-1: the policy comes and goes under tools that are in use.
#[tokio::test]
async fn the_policy_comes_and_goes() {
    let fixture = Fixture::new().await;
    fixture.put("a", "text");
    let policy = ReadBeforeWritePlugin::new(ReadBeforeWriteConfig::default());
    let mounted = fixture
        .kernel
        .mount(std::sync::Arc::new(policy))
        .await
        .expect("mounted");
    assert_eq!(fixture.refusal("write", write("a")).await.0, "FS_STALE");
    fixture.kernel.unmount(&mounted).await.expect("unmounted");
    fixture.text("write", write("a")).await;
}

/// RUN-3: a value out of range fails at mount and names the key.
#[tokio::test]
async fn a_bad_configuration_fails_at_mount() {
    let fixture = Fixture::new().await;
    let config = ToolFsConfig {
        limit: 2001,
        ..ToolFsConfig::default()
    };
    let mounted = fixture
        .kernel
        .mount(std::sync::Arc::new(ToolFsPlugin::new(config)))
        .await;
    let error = mounted.expect_err("out of range").to_string();
    assert!(
        error.contains("limit must be an integer from 1 to 2000, not 2001"),
        "{error}"
    );
}
