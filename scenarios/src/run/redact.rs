//! What differs from run to run, taken out of texts that are compared with snapshots.

use super::fill::{Places, uri_of};

/// What is one thing here and another there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying<'a> {
    /// The folders of the case, and the program of the fake server.
    pub(crate) places: &'a Places,
    /// The home folder that the harness was given.
    pub(crate) home: Option<&'a str>,
    /// The processes of the case.
    pub(crate) pids: &'a [u32],
}

/// Puts templates where the case's own folders, the home folder, dates and process ids stand.
///
/// A date is any of the form `2026-01-31`, with or without a time behind it, whichever day it is; a
/// process id is a number that a process of the case has, standing behind `pid`, `process` or
/// `processId`. Numbers elsewhere, such as columns, are left alone.
pub(crate) fn redact(text: &str, varying: Varying<'_>) -> String {
    let Varying { places, home, pids } = varying;
    let path = |path: &std::path::Path| path.display().to_string();
    let mut names = vec![
        (uri_of(&places.workspace), "${workspaceUri}"),
        (path(&places.workspace), "${workspace}"),
        (uri_of(&places.root), "${rootUri}"),
        (path(&places.root), "${root}"),
        (path(&places.fake), "${fake}"),
    ];
    if let Some(home) = home.filter(|home| home.len() > 1) {
        names.push((uri_of(home.as_ref()), "${homeUri}"));
        names.push((home.to_owned(), "${home}"));
    }
    // The longer ones first: one may lie in another.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut text = text.to_owned();
    for (name, template) in names {
        text = text.replace(&name, template);
    }
    without_pids(&without_dates(&text), pids)
}

/// Text, and numbers of decimal digits, by turns.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let digit = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|char: char| char.is_ascii_digit() != digit);
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(run)
    })
}

fn without_dates(text: &str) -> String {
    let runs: Vec<&str> = runs(text).collect();
    let number = |at: usize, length: usize| {
        let run = runs.get(at).copied().unwrap_or_default();
        run.len() == length && run.bytes().all(|byte| byte.is_ascii_digit())
    };
    let between = |at: usize, text: &str| runs.get(at).is_some_and(|run| *run == text);
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    while at < runs.len() {
        let date = number(at, 4)
            && between(at + 1, "-")
            && number(at + 2, 2)
            && between(at + 3, "-")
            && number(at + 4, 2);
        if !date {
            redacted.push_str(runs[at]);
            at += 1;
            continue;
        }
        redacted.push_str("${date}");
        at += 5;
        let time = (between(at, "T") || between(at, " "))
            && number(at + 1, 2)
            && between(at + 2, ":")
            && number(at + 3, 2);
        if !time {
            continue;
        }
        at += 4;
        if between(at, ":") && number(at + 1, 2) {
            at += 2;
            if between(at, ".") && at + 1 < runs.len() {
                at += 2;
            }
        }
        redacted.push_str("${time}");
        // Its zone: `Z`, or the hours and minutes it is off.
        if let Some(rest) = runs.get(at).and_then(|run| run.strip_prefix('Z')) {
            redacted.push_str(rest);
            at += 1;
        } else if (between(at, "+") || between(at, "-"))
            && number(at + 1, 2)
            && between(at + 2, ":")
            && number(at + 3, 2)
        {
            at += 4;
        }
    }
    redacted
}

fn without_pids(text: &str, pids: &[u32]) -> String {
    let mut redacted = String::with_capacity(text.len());
    for run in runs(text) {
        let pid = run.parse::<u32>().is_ok_and(|pid| pids.contains(&pid));
        let told = redacted.trim_end_matches([' ', ':', '=', '"', '(', '#']);
        let told = told.len() >= 3
            && ["pid", "process", "processid"].iter().any(|word| {
                let start = told.len().checked_sub(word.len());
                start
                    .and_then(|start| told.get(start..))
                    .is_some_and(|end| end.eq_ignore_ascii_case(word))
            });
        if pid && told {
            redacted.push_str("${pid}");
        } else {
            redacted.push_str(run);
        }
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        let places = Places {
            root: "/t/case".into(),
            workspace: "/t/case/ws a".into(),
            fake: "/t/bin/fake".into(),
            seed: 0,
        };
        let varying = Varying {
            places: &places,
            home: Some("/t/case/home"),
            pids: &[17, 4321],
        };
        redact(text, varying)
    }

    #[test]
    fn what_varies_is_taken_out() {
        for (text, expected) in [
            ("/t/case/ws a/x.ts:1", "${workspace}/x.ts:1"),
            ("file:///t/case/ws%20a/x", "${workspaceUri}/x"),
            ("/t/case/b and /t/bin/fake", "${root}/b and ${fake}"),
            ("/t/case/home/x", "${home}/x"),
            ("file:///t/case/home", "${homeUri}"),
            ("on 2026-01-31.", "on ${date}."),
            ("2026-01-31T10:11:12.345Z, Z", "${date}${time}, Z"),
            ("2026-01-31T10:11:12+02:00!", "${date}${time}!"),
            (
                "2026-01-31T10:11-1 and 2026-01-31T1",
                "${date}${time}-1 and ${date}T1",
            ),
            ("2026-01-31 10:11!", "${date}${time}!"),
            (
                "pid 17, process 4321, {\"processId\":17}",
                "pid ${pid}, process ${pid}, {\"processId\":${pid}}",
            ),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        for text in [
            "a.ts:17:4321",
            "17",
            "pid 18",
            "pid 170",
            "12026-01-31",
            "2026-1-31",
            "2026-01-311",
            "rapid 😀 17",
            "",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
