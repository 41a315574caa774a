//! The page of reports: what it shows, that nothing from outside gets out of its place, and that it
//! stays a page whatever the reports hold.

#[path = "support/servers.rs"]
mod servers;
mod support;

use std::collections::BTreeMap;

use dsh_reports::{Report, Run, Verdict, gather, render_json, render_page};

use servers::{EVIL, clauses, rich, server};

fn page(reports: &[Report]) -> String {
    render_page(reports).expect("a page is made of any report")
}

/// A page without the style and the script, which are the same in all.
fn without_assets(page: &str) -> String {
    let mut out = page.to_owned();
    for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let from = out.find(open).expect("the page has one") + open.len();
        let to = from + out[from..].find(close).expect("it ends");
        out.replace_range(from..to, "");
    }
    out
}

/// The tags of a page, without what is between them.
fn tags(page: &str) -> Vec<&str> {
    assert!(!page.contains("<!--"), "a comment could hide something");
    page.split('<')
        .skip(1)
        .map(|rest| &rest[..rest.find('>').expect("a tag ends")])
        .collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let name = format!(" {name}=\"");
    let from = tag.find(&name)? + name.len();
    Some(&tag[from..from + tag[from..].find('"')?])
}

/// A tag with its attributes' names alone.
fn without_values(tag: &str) -> String {
    tag.split('"').step_by(2).collect()
}

fn name(tag: &str) -> &str {
    tag.split([' ', '\n', '/']).next().unwrap_or_default()
}

/// What holds for every page, whatever it shows.
#[track_caller]
fn check(page: &str) {
    let bare = without_assets(page);
    let tags = tags(&bare);
    let mut open: Vec<&str> = Vec::new();
    let mut heading = 0;
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in &tags {
        let foreign = ["link", "img", "iframe", "object", "embed", "base", "form"];
        assert!(!foreign.contains(&name(tag)), "<{tag}>");
        let names = without_values(tag);
        assert!(!names.contains(" src"), "fetches: <{tag}>");
        assert!(!names.contains(" on"), "has a handler: <{tag}>");
        if let Some(id) = attribute(tag, "id") {
            *ids.entry(id).or_default() += 1;
        }
        if let Some(level) = tag.strip_prefix('h').and_then(|rest| rest.get(..1)) {
            let level: usize = level.parse().unwrap_or(heading);
            assert!(level <= heading + 1, "h{level} behind h{heading}");
            heading = level;
        }
        if name(tag) == "th" {
            assert!(
                attribute(tag, "scope").is_some(),
                "<{tag}> says not what it is the head of"
            );
        }
        if name(tag) == "svg" {
            let parent = open.iter().rev().find(|parent| name(parent) == "div");
            let hidden = |tag: &str| attribute(tag, "aria-hidden") == Some("true");
            assert!(
                hidden(tag) || parent.is_some_and(|of| hidden(of)),
                "<{tag}> says nothing"
            );
        }
        if let Some(closed) = tag.strip_prefix('/') {
            let opened = open.pop().map(name);
            assert_eq!(opened, Some(closed), "closed in another order than opened");
        } else if !tag.ends_with('/') && !["!DOCTYPE", "meta", "input", "br"].contains(&name(tag)) {
            open.push(tag);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    let twice: Vec<&&str> = ids
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(id, _)| id)
        .collect();
    assert!(twice.is_empty(), "ids that occur twice: {twice:?}");
    for tag in &tags {
        if let Some(href) = attribute(tag, "href") {
            let to = href.strip_prefix('#').expect("nothing leads away");
            assert!(ids.contains_key(to), "{href} leads nowhere");
        }
        for to in ["aria-labelledby", "aria-describedby", "data-part"] {
            if let Some(to) = attribute(tag, to) {
                assert!(ids.contains_key(to), "no {to} for <{tag}>");
            }
        }
    }
    for (id, _) in ids {
        assert!(
            id.chars()
                .all(|char| char.is_ascii_alphanumeric() || "-.".contains(char)),
            "{id}"
        );
    }
    assert_eq!(tags.iter().filter(|tag| name(tag) == "script").count(), 1);
    assert_eq!(tags.iter().filter(|tag| name(tag) == "h1").count(), 1);
    assert_eq!(
        bare.matches("<table").count(),
        bare.matches("<caption").count(),
        "a table without a caption"
    );
    let hidden = |char: char| {
        (char.is_control() && !matches!(char, '\n' | '\t'))
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!page.contains(hidden), "something that hides or reorders");
}

/// The text between the tags, blanks as one.
fn text(page: &str) -> String {
    let bare = without_assets(page);
    let texts = bare.split('<').filter_map(|rest| rest.split_once('>'));
    let words: Vec<&str> = texts
        .flat_map(|(_, text)| text.split_whitespace())
        .collect();
    words.join(" ")
}

#[track_caller]
fn says(page: &str, all: &[&str]) {
    let text = text(page);
    for words in all {
        assert!(text.contains(words), "the page does not say {words:?}");
    }
}

#[test]
fn everything_that_is_known_of_a_server_is_on_its_page() {
    let page = page(&[rich()]);
    check(&page);
    says(
        &page,
        &[
            "8 language servers, judged",
            "Interrupted: this report is partial.",
            // Who, and how to do it again.
            "typescript-language-server 6.0.2",
            "dsh-conform check --server typescript-language-server --install",
            "linux x86_64",
            "2026-11-30 12:00 UTC",
            // Readiness: the sentence, signals, each answer in words.
            "A client that does not wait sees false empties for most of this time.",
            "$/progress end (Indexing) ✗ not true: an answer after it was not right",
            "no project for file:///workspace/main.ts",
            "right 1.8 s, stable 2.0 s",
            // Rounds and memory.
            "One file, another text each time 200 × hover",
            "202 MiB before",
            "225 MiB after, +23 MiB",
            "3 × null",
            // Everything else that is measured.
            "dies: exit code 1: Unhandled method workspace/configuration",
            "nothing of the kind was asked",
            "did not end, and was killed",
            "530 ms",
            "error -32603 (index out of range)",
            "does not answer as before",
            "neither answer came",
            "17 B",
            ".cache/index.bin",
            // The remedy.
            "typescript-language-server: command: typescript-language-server",
            "45000 (45 s) is advised",
            "against: silent until workspace/configuration is answered (QUA-4, QUA-5, QUA-7)",
            // Cases: expected, got, picture, how to repeat.
            "an answer, or error -32800, within 2000 ms",
            "nothing within 2000 ms; the answer came after 3.4 s",
            "to the server: textDocument/references (7) main.ts",
            "no answer within 2000 ms decides",
            "2.0 s later",
            "dsh-conform check --server typescript-language-server --install --only QUA-10",
            // Conclusions of others, whole.
            "QUALIFIED WITH SETTINGS: configuration: {}",
            "NOT QUALIFIED: QUA-4, QUA-6, QUA-8",
            "download: needs glibc 2.38",
            "PROTOCOL ONLY",
            "HARNESS ERROR: QUA-1: the folder of the sample cannot be made",
            // Clauses.
            "A cancelled request is answered within 2 s",
            "no probe is for it",
        ],
    );
}

#[test]
fn every_verdict_has_a_sign_and_a_word_in_the_matrix() {
    let mut run = server("a", "1", "x");
    let mut cases = run.cases.iter_mut().filter(|case| case.label.is_none());
    for verdict in Verdict::ALL {
        cases.next().expect("there are more cases").verdict = verdict;
    }
    servers::conclude(&mut run);
    let page = page(&[servers::report(vec![run])]);
    check(&page);
    let body = &page[page.find("<tbody>").unwrap()..page.find("</tbody>").unwrap()];
    for (words, mark) in [
        ("pass", "✓"),
        ("note", "!"),
        ("fail", "✗"),
        ("untestable", "?"),
        ("not applicable", "–"),
        ("timeout", "✗"),
        ("crash", "✗"),
        ("known", "~"),
        ("harness error", "#"),
        ("pass, 4 cases", "✓"),
    ] {
        let links = body.split("<a ").filter(|link| {
            link.contains(&format!(": {words}\"")) && link.contains(&format!(">{mark}</a>"))
        });
        assert!(links.count() > 0, "{words}");
    }
    says(&page, &["~ known failure", "# harness error"]);
    // Of a clause that nothing could judge nobody is told to keep it, or not to.
    let whole = text(&page);
    let (_, statements) = whole.rsplit_once("Kept by").unwrap();
    assert_eq!(statements.matches("0 of 1").count(), 5, "{statements}");
    assert_eq!(body.matches("class=\"cell").count(), clauses().len());
}

/// What a reader of the first lines learns, and what the signs behind it hang on.
#[test]
fn the_page_begins_with_the_answer() {
    let page = page(&[rich()]);
    let whole = text(&page);
    let (top, _) = whole.split_once("A row for each server").unwrap();
    for words in [
        "4 of 8 qualify, 2 of them with the settings named here",
        "2 ! qualified with settings typescript-language-server configuration: {} \
         yaml-language-server configuration: {}",
        "1 ✗ not qualified kotlin-language-server QUA-4, QUA-6, QUA-8",
        "1 ? untestable sourcekit-lsp",
    ] {
        assert!(top.contains(words), "{words}: {top}");
    }
    // One server is its own answer.
    let one = self::page(&[servers::report(vec![server("a", "1", "x")])]);
    check(&one);
    assert!(!one.contains("class=\"answer\""));
}

/// Of a setting with a long value, the names in it that are set.
#[test]
fn long_settings_are_named_by_what_they_set() {
    let mut run = server("a", "1", "x");
    run.conclusion = dsh_reports::Conclusion::QualifiedWithSettings {
        settings: vec![
            "initializationOptions: {\"vue\":{\"hybridMode\":false},\"typescript\":{\"tsdk\":\"~/lib\"}}"
                .to_owned(),
            "configuration: {\"enable\":true}".to_owned(),
            format!("command: {}", "x".repeat(80)),
        ],
        notes: 0,
    };
    let page = page(&[servers::report(vec![run, server("b", "1", "x")])]);
    check(&page);
    says(
        &page,
        &[
            "initializationOptions: vue.hybridMode, typescript.tsdk; configuration: \
             {&#34;enable&#34;:true}; command: xxx",
        ],
    );
}

/// Whoever hears the page hears of each sign whose it is and what it is about.
#[test]
fn every_sign_of_the_matrix_says_whose_it_is_and_of_which_clause() {
    let page = page(&[rich()]);
    let table = &page[page.find("<table class=\"matrix\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    let (heads, body) = table.split_once("<tbody>").unwrap();
    for clause in [
        "QUA-1: starts",
        "QUA-4: known answers",
        "QUA-19: writes nothing",
    ] {
        assert!(
            heads.contains(&format!("aria-label=\"{clause}\"")),
            "{clause}"
        );
    }
    for clause in clauses() {
        let label = format!("aria-label=\"{}: ", clause.id);
        assert!(heads.contains(&label), "{} has no title", clause.id);
    }
    assert_eq!(
        heads.matches("title=\"QUA-").count(),
        heads.matches("class=\"clause").count()
    );
    let labels: Vec<&str> = tags(body)
        .into_iter()
        .filter(|tag| name(tag) == "a" && !tag.contains("href=\"#clause"))
        .filter_map(|tag| attribute(tag, "aria-label"))
        .collect();
    let distinct: std::collections::BTreeSet<&str> = labels.iter().copied().collect();
    assert!(labels.len() > 100, "{}", labels.len());
    assert_eq!(distinct.len(), labels.len(), "two links of one name");
    assert!(labels.contains(&"typescript-language-server QUA-10: note"));
    // What does not just hold says why at once.
    assert!(
        body.contains("title=\"QUA-6, fail: 17 bytes on stdout are no frame\""),
        "{body}"
    );
    // Nor is a row that nothing could be judged in left without its reason.
    says(
        &page,
        &[
            "no recipe for this platform has worked: · apt: no package has it · download: needs glibc 2.38",
        ],
    );
}

/// A case that somebody has to look at has a picture, or says why it has none.
#[test]
fn no_picture_is_missing_without_a_word() {
    let mut run = server("a", "1", "x");
    for (id, verdict) in [
        ("QUA-17", Verdict::Note),
        ("QUA-5", Verdict::Untestable),
        ("QUA-10", Verdict::Fail),
    ] {
        let case = servers::case(&mut run, id);
        case.verdict = verdict;
        if verdict != Verdict::Fail {
            case.evidence.clear();
        }
    }
    servers::case(&mut run, "QUA-10").evidence = serde_json::from_value(
        serde_json::json!([{"seq": 1, "atUs": 5, "text": "→ exit", "decisive": true}]),
    )
    .unwrap();
    servers::conclude(&mut run);
    let page = page(&[servers::report(vec![run])]);
    check(&page);
    for (id, words) in [
        ("a.QUA-17", "No picture: no single message decides this"),
        ("a.QUA-5", "No picture: what has to come first did not come"),
        ("a.QUA-10", "class=\"sequence\""),
    ] {
        let case = &page[page.find(&format!("id=\"{id}\"")).unwrap()..];
        let case = &case[..case.find("</li>\n<li id=").unwrap_or(case.len())];
        assert!(case.contains(words), "{id}: {case}");
    }
}

/// A way of a client that goes wrong stands with what helps, in every form.
#[test]
fn what_a_client_has_to_do_stands_beside_its_way() {
    let mut run = server("a", "1", "x");
    let way = |name: &str, outcome: &str| serde_json::json!({"name": name, "summary": "", "outcome": outcome, "firstRightUs": 5});
    run.measured = serde_json::from_value(serde_json::json!({
        "personas": [way("usual", "fine"), way("requests-refused", "dead"), way("configuration-null", "silent")]
    }))
    .unwrap();
    run.remedy = Some(servers::remedy(&serde_json::json!({"command": "~/bin/a"})));
    let report = servers::report(vec![run]);
    let page = page(std::slice::from_ref(&report));
    check(&page);
    let forms = [
        text(&page),
        dsh_reports::render_markdown(&report),
        dsh_reports::render_text(&report, dsh_reports::TextOptions::default()),
    ];
    for form in forms {
        let form: Vec<&str> = form.split_whitespace().collect();
        let form = form.join(" ");
        for words in [
            "What helps",
            "Answer every request of the server with a result",
            "with the configuration of the row",
            "~ stands for the home folder",
        ] {
            assert!(form.contains(words), "{words}: {form}");
        }
    }
}

#[test]
fn a_remedy_reads_back_as_the_row_it_was() {
    let report = rich();
    let page = page(std::slice::from_ref(&report));
    let row = &report.runs[0].remedy.as_ref().unwrap().row;
    let from = page.find("<code>typescript-language-server:").unwrap() + "<code>".len();
    let yaml = &page[from..from + page[from..].find("</code>").unwrap()];
    let yaml = yaml.replace("&#34;", "\"").replace("&#39;", "'");
    let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(&read["typescript-language-server"], row);
}

#[test]
fn what_comes_from_outside_stays_text_and_is_seen() {
    let page = page(&[rich()]);
    check(&page);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    let text = text(&page);
    for sign in ["‹U+202E›", "‹U+0000›", "‹U+001B›", "{{ 7 * 7 }}"] {
        assert!(text.contains(sign), "{sign}");
    }
    // In the name, the version, a message, a picture, a table and a remedy at least.
    assert!(text.matches("alert(1)").count() > 100);
    assert!(EVIL.contains("alert(1)"));
}

#[test]
fn the_same_reports_give_the_same_page_in_any_order() {
    let mut turned = rich();
    turned.runs.reverse();
    let first = page(&[rich()]);
    assert_eq!(first, page(&[turned]));
    let harness = || support::report(vec![support::mixed()]);
    assert_eq!(page(&[rich(), harness()]), page(&[harness(), rich()]));
}

#[test]
fn the_style_and_the_script_fetch_nothing_and_run_under_a_policy() {
    let page = page(&[rich()]);
    let style = &page[page.find("<style>").unwrap()..page.find("</style>").unwrap()];
    let script = &page[page.find("<script>").unwrap()..page.rfind("</script>").unwrap()];
    assert_eq!(
        style.matches("url(").count(),
        style.matches("url(#").count()
    );
    for text in [style, script] {
        for word in [
            "@import",
            "http",
            "fetch",
            "import(",
            "XMLHttp",
            "innerHTML",
            "src",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }
    assert!(script.lines().count() < 200);
    assert!(page.contains("default-src 'none'"));
    // Nothing moves, so there is nothing to reduce for those who want less of it.
    for motion in ["transition:", "animation:", "@keyframes", "smooth"] {
        assert!(
            !style.contains(motion) && !script.contains(motion),
            "{motion}"
        );
    }
    for needed in ["prefers-color-scheme: dark", "@media print", "max-width"] {
        assert!(style.contains(needed), "{needed}");
    }
}

#[test]
fn a_harness_has_areas_by_profile_and_what_is_red_in_full() {
    let page = page(&[support::report(vec![support::mixed()])]);
    check(&page);
    says(
        &page,
        &[
            "dsh-harness 0.1.0",
            "DOES NOT CONFORM: CAN-4",
            "Areas by profile",
            "1 fail · 1 untestable · 1 pass",
            "cancel/ignored#hover-late the next query was served by the same process",
            "2 server processes",
            "to the server: textDocument/didOpen a.ts version 1 decides",
            "dsh-conform run &#39;cancel/ignored#hover-late&#39; --seed 42 --in-process",
            "framing/one (subject.yaml:4): it does not fail any more; take it out",
            "the subject does not claim the profile instructions",
        ],
    );
}

/// A suite of so many cases, a tenth of them red, each with long texts.
fn suite(count: usize) -> Run {
    let mixed = support::mixed();
    let cases = (0..count).map(|number| {
        let mut case = mixed.cases[usize::from(number % 10 == 0)].clone();
        case.group = format!("area-{}", number % 17);
        case.id = format!("{}/case-{number}", case.group);
        case
    });
    support::harness(cases.collect())
}

#[test]
fn a_large_suite_gives_a_page_of_bounded_size() {
    let size = |count: usize| {
        let page = page(&[support::report(vec![suite(count)])]);
        check(&page);
        assert!(page.matches("class=\"sequence\"").count() <= 200);
        page.len()
    };
    let (one, large) = (size(1_800), size(18_000));
    assert!(one < 2_000_000, "{one}");
    assert!(large < one * 10, "{one} and {large}");
}

fn page_of(run: Run) -> String {
    page(&[support::report(vec![run])])
}

#[test]
fn long_texts_are_cut_and_it_is_said() {
    let mut run = server("a", "1", "x");
    servers::case(&mut run, "QUA-1").message = "y".repeat(5_000_000);
    run.remarks = vec!["z".repeat(5_000_000)];
    let page = page(&[servers::report(vec![run])]);
    check(&page);
    assert!(page.len() < 200_000, "{}", page.len());
    says(&page, &["yyy…", "zzz…"]);
    // What a suite says is its own, and is kept for longer.
    let mut run = suite(1);
    run.remarks = vec!["z".repeat(5_000_000)];
    let page = page_of(run);
    assert!(page.len() < 200_000, "{}", page.len());
    says(&page, &["the report has the rest"]);
}

#[test]
fn numbers_of_any_size_have_a_place() {
    fn set(value: &mut serde_json::Value, to: u64) {
        match value {
            serde_json::Value::Number(number) => *number = to.into(),
            serde_json::Value::Array(all) => all.iter_mut().for_each(|value| set(value, to)),
            serde_json::Value::Object(all) => {
                all.retain(|name, _| !["code", "signal"].contains(&name.as_str()));
                all.values_mut().for_each(|value| set(value, to));
            }
            _ => {}
        }
    }
    for to in [0, 1, u64::MAX] {
        let mut run = server("a", "1", "x");
        let mut measured = serde_json::to_value(servers::measured(1_000)).unwrap();
        set(&mut measured, to);
        run.measured = serde_json::from_value(measured).unwrap();
        let page = page(&[servers::report(vec![run])]);
        check(&page);
        assert!(!page.contains("NaN") && !page.contains("=\"inf"), "{to}");
    }
}

#[test]
fn nothing_at_all_gives_a_page_that_says_so() {
    for reports in [vec![], vec![servers::report(Vec::new())]] {
        let page = page(&reports);
        check(&page);
        says(&page, &["nothing was judged"]);
    }
}

fn named(reports: Vec<Report>) -> Vec<(String, Report)> {
    let names = (1..).map(|number| format!("{number}.json"));
    names.zip(reports).collect()
}

#[test]
fn reports_of_any_kind_stand_on_one_page_and_shards_are_joined() {
    let part = |index: u32| {
        let mut run = support::mixed();
        run.shard = Some(dsh_reports::Shard { index, of: 2 });
        let half = run.cases.len() / 2;
        run.cases = if index == 1 {
            run.cases[..half].to_vec()
        } else {
            run.cases[half..].to_vec()
        };
        support::report(vec![run])
    };
    let mut elsewhere = servers::report(vec![server("gopls", "0.20.0", "go")]);
    elsewhere.platform.os = "macos".to_owned();
    let power = support::report(vec![support::power()]);
    let gathered = gather(named(vec![
        part(1),
        rich(),
        power,
        part(2),
        elsewhere,
        rich(),
    ]))
    .unwrap();
    // Eight servers once each, the one from elsewhere, the harness whole, and the mutants.
    assert_eq!(gathered.len(), 11);
    let page = page(&gathered);
    check(&page);
    says(
        &page,
        &[
            "9 language servers, judged",
            "linux x86_64, macos x86_64",
            "Mutants of dsh-harness",
            &format!("Cases {} ·", support::mixed().cases.len()),
        ],
    );
}

#[test]
fn shards_that_contradict_each_other_are_refused_by_name() {
    let part = |index: u32, verdict: Verdict| {
        let mut run = support::mixed();
        run.shard = Some(dsh_reports::Shard { index, of: 2 });
        run.cases[0].verdict = verdict;
        support::report(vec![run])
    };
    let error = gather(named(vec![part(1, Verdict::Pass), part(2, Verdict::Fail)])).unwrap_err();
    assert!(
        error.to_string().contains("1.json and in 2.json"),
        "{error}"
    );
}

#[test]
fn the_example_is_a_report_like_any_other() {
    let text = render_json(&rich()).unwrap();
    assert_eq!(dsh_reports::read(&text).unwrap(), rich());
}

/// A cold start that was measured says what the host's own answers would say again.
#[test]
fn the_host_s_answers_are_shown_where_no_cold_start_is() {
    let told = |page: &str| page.contains("As the host was answered");
    let mut report = rich();
    assert!(!told(&page(std::slice::from_ref(&report))));
    for run in &mut report.runs {
        run.measured = None;
    }
    assert!(told(&page(&[report])));
}
