//! `report`: stored reports, joined and shown again.

use crate::support::{Desk, Said, whole_check};

/// A check's report, which is the same each time but for its date.
fn stored(desk: &Desk, name: &str) -> dsh_reports::Report {
    std::fs::write(desk.path().join(name), whole_check()).unwrap();
    read(desk, name)
}

fn read(desk: &Desk, name: &str) -> dsh_reports::Report {
    let text = std::fs::read_to_string(desk.path().join(name)).unwrap();
    dsh_reports::read(&text).unwrap()
}

#[track_caller]
fn change(desk: &Desk, name: &str, into: &str, change: impl FnOnce(&mut dsh_reports::Report)) {
    let mut report = read(desk, name);
    change(&mut report);
    let text = dsh_reports::render_json(&report).unwrap();
    std::fs::write(desk.path().join(into), text).unwrap();
}

#[test]
fn a_report_can_be_shown_in_every_form() {
    let desk = Desk::new();
    let report = stored(&desk, "a.json");
    let render = |args: &[&str]| -> Said {
        let mut all = vec!["report", "render", "a.json"];
        all.extend(args);
        desk.run(&all).ended(0)
    };
    render(&[]).out_has("QUALIFIED").out_has("QUA-1");
    assert_eq!(render(&["--format", "json"]).report(), report);
    render(&["--format", "junit"]).out_has("<testsuites name=\"dsh-conform\"");
    render(&["--format", "markdown"]).out_has("### ✓ `built-in");
    render(&["--format", "html"]).out_has("<title>built-in");
    render(&["--format", "github"]).out_has("::notice title=built-in");
    render(&["--format", "badge"]).out_has("\"schemaVersion\": 1");
    let said = render(&["--format", "text", "--format", "junit", "--out", "forms"]);
    assert!(said.out.contains("QUALIFIED"));
    assert_eq!(desk.files(), ["a.json", "forms/report.xml"]);
    // A single form is not printed where a folder was named for it.
    let said = render(&["--format", "markdown", "--out", "forms"]);
    assert_eq!(said.out, "");
    assert!(
        desk.files().contains(&"forms/report.md".to_owned()),
        "{:?}",
        desk.files()
    );
}

/// Reports about different things, from different platforms, which no other form could join.
#[test]
fn one_page_shows_reports_of_anything() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    change(&desk, "a.json", "elsewhere.json", |report| {
        report.platform.os = "elsewhere".to_owned();
    });
    let published = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/reports/published/mutants.json"
    );
    let files = ["report", "render", "a.json", "elsewhere.json", published];
    let with = |more: &[&str]| desk.run(&[&files[..], more].concat());
    let said = with(&["--format", "html", "--out", "page.html"]).ended(0);
    assert_eq!(
        (said.out.as_str(), said.err.as_str()),
        ("", "report: page.html\n")
    );
    let page = std::fs::read_to_string(desk.path().join("page.html")).unwrap();
    for words in [
        "<title>2 language servers, judged</title>",
        "elsewhere ",
        "Mutants of dsh-harness",
    ] {
        assert!(page.contains(words), "{words}");
    }
    with(&["--format", "html", "--out", "."]).ended(0);
    assert_eq!(
        std::fs::read_to_string(desk.path().join("report.html")).unwrap(),
        page
    );
    with(&["--format", "html"]).ended(0).out_has("</html>");
    with(&["--format", "markdown"])
        .ended(2)
        .err_has("merge reports of one version of dsh-conform on one platform");
}

#[test]
fn a_report_can_be_merged_with_itself() {
    let desk = Desk::new();
    let report = stored(&desk, "a.json");
    let merged = desk
        .run(&["report", "merge", "a.json", "a.json"])
        .ended(0)
        .report();
    assert_eq!(merged.runs[0].cases, report.runs[0].cases);
    assert_eq!(merged.runs[0].totals, report.runs[0].totals);
    assert_eq!(merged.runs[0].conclusion, report.runs[0].conclusion);
}

#[test]
fn servers_are_put_side_by_side() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    change(&desk, "a.json", "b.json", |report| {
        report.runs[0].subject.name = "other".to_owned();
    });
    desk.run(&["report", "merge", "a.json", "b.json", "--format", "text"])
        .ended(0)
        .out_has("other")
        .out_has("built-in");
}

#[test]
fn what_cannot_be_merged_is_refused_with_the_reason() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    change(&desk, "a.json", "version.json", |report| {
        report.tool.version = "9.9.9".to_owned();
    });
    change(&desk, "a.json", "subject.json", |report| {
        report.runs[0].subject.kind = dsh_reports::SubjectKind::Harness;
    });
    change(&desk, "a.json", "outcome.json", |report| {
        report.runs[0].cases[0].verdict = dsh_reports::Verdict::Fail;
    });
    for (file, why) in [
        ("version.json", "dsh-conform 9.9.9"),
        ("subject.json", "merge the shards of one subject"),
        ("outcome.json", "with different outcomes"),
    ] {
        let said = desk.run(&["report", "merge", "a.json", file]).ended(2);
        let said = said.err_has(why).err_has(file).err_has("a.json");
        assert_eq!(said.out, "");
    }
}

#[test]
fn what_is_no_report_is_refused_by_name() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    let text = std::fs::read_to_string(desk.path().join("a.json")).unwrap();
    let newer = text.replace("dsh-conform-report/1", "dsh-conform-report/2");
    let half = &text[..text.len() / 2];
    for (file, text) in [
        ("newer.json", newer.as_str()),
        ("half.json", half),
        ("else.json", "{\"x\": 1}"),
        ("list.json", "[]"),
        ("text.json", "not JSON"),
        ("empty.json", ""),
    ] {
        std::fs::write(desk.path().join(file), text).unwrap();
    }
    std::fs::write(desk.path().join("bytes.json"), b"\xff\xfe").unwrap();
    for (file, why) in [
        ("newer.json", "this program reads \"dsh-conform-report/1\""),
        ("half.json", "was the file cut"),
        ("else.json", "not a report of the form"),
        ("list.json", "not a report of the form"),
        ("text.json", "not a report of the form"),
        ("empty.json", "not a report of the form"),
        ("bytes.json", "not UTF-8"),
        ("missing.json", "cannot read missing.json"),
        (".", "cannot read ."),
    ] {
        desk.run(&["report", "render", file])
            .ended(2)
            .err_has(why)
            .err_has(file);
        desk.run(&["report", "merge", "a.json", file])
            .ended(2)
            .err_has(why)
            .err_has(file);
    }
    desk.run(&["report", "merge"]).ended(2).err_has("<FILE>");
    desk.run(&["report", "render", "/dev/zero"])
        .ended(2)
        .err_has("larger than");
}

#[test]
fn junit_of_the_command_line_parses() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    let xml = desk
        .run(&["report", "render", "a.json", "--format", "junit"])
        .ended(0)
        .out;
    // Every element that is opened is closed, in order.
    let mut open: Vec<&str> = Vec::new();
    for tag in xml.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        match tag {
            tag if tag.starts_with('?') || tag.ends_with('/') => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_without_runs_is_a_sentence() {
    let desk = Desk::new();
    stored(&desk, "a.json");
    change(&desk, "a.json", "none.json", |report| report.runs.clear());
    for form in ["text", "markdown", "github"] {
        desk.run(&["report", "render", "none.json", "--format", form])
            .ended(0)
            .out_has("has no run in it");
    }
}

/// What is published names no folder of the machine it was made on.
#[test]
fn a_portable_report_has_no_home_and_no_transcripts() {
    let desk = Desk::new();
    desk.run(&[
        "check", "--only", "QUA-1", "--format", "json", "--out", "own.json",
    ])
    .ended(0);
    // The built-in server is the program itself.
    let program = crate::support::program();
    let home = program.parent().unwrap().to_str().unwrap();
    let own = std::fs::read_to_string(desk.path().join("own.json")).unwrap();
    assert!(own.contains(home));
    let merge = ["report", "merge", "own.json", "--portable"];
    let published = desk.command(&merge).env("HOME", home).output().unwrap();
    let published = String::from_utf8(published.stdout).unwrap();
    assert!(
        !published.contains(home) && published.contains("\"~/"),
        "{published}"
    );
    assert!(!published.contains("\"transcript\""));
}
