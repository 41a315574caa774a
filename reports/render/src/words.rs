//! What several forms of a report say in the same words.

use std::collections::BTreeMap;

use crate::conclusion::Conclusion;
use crate::model::{Evidence, OperationTimeline, Place, Run, RunKind, Skipped, Stale, Subject};
use crate::outside::clipped;
use crate::verdict::{Level, Verdict};

/// What there is to say of a report without any run.
pub(crate) const NO_RUNS: &str = "This report has no run in it, so nothing was judged.";

/// Name and version.
pub(crate) fn subject(subject: &Subject) -> String {
    match &subject.version {
        Some(version) => format!("{} {version}", subject.name),
        None => subject.name.clone(),
    }
}

/// `file:line`.
pub(crate) fn place(place: &Place) -> String {
    match place.line {
        Some(line) => format!("{}:{line}", place.file),
        None => place.file.clone(),
    }
}

/// What is wrong with an entry of a list of known failures.
pub(crate) fn stale(stale: &Stale) -> String {
    match &stale.source {
        Some(source) => format!("{} ({}): {}", stale.case, place(source), stale.reason),
        None => format!("{}: {}", stale.case, stale.reason),
    }
}

/// How many cases were not run, and why.
pub(crate) fn skipped(kind: RunKind, skipped: &Skipped) -> String {
    format!("{}, {}", cases(kind, skipped.cases.len()), skipped.reason)
}

/// How many cases were run.
pub(crate) fn how_many(run: &Run) -> String {
    cases(run.kind, run.cases.len())
}

pub(crate) fn cases(kind: RunKind, count: usize) -> String {
    let what = match kind {
        RunKind::Conformance => "case",
        RunKind::Power => "mutant",
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The conclusion without the reason, which stands with the run itself.
pub(crate) fn short(conclusion: &Conclusion) -> String {
    match conclusion {
        Conclusion::Untestable { .. } => "UNTESTABLE".to_owned(),
        Conclusion::HarnessError { .. } => "HARNESS ERROR".to_owned(),
        other => other.to_string(),
    }
}

/// The same with long settings by what they set.
pub(crate) fn brief(conclusion: &Conclusion) -> String {
    let Conclusion::QualifiedWithSettings { settings, notes } = conclusion else {
        return short(conclusion);
    };
    let settings = settings.iter().map(|of| setting(of)).collect();
    let notes = *notes;
    Conclusion::QualifiedWithSettings { settings, notes }.to_string()
}

/// `MUST 9/9 · SHOULD 7/8`.
pub(crate) fn counts(run: &Run) -> String {
    let parts: Vec<String> = [
        (Level::Must, run.totals.must),
        (Level::Should, run.totals.should),
    ]
    .into_iter()
    .filter(|(_, count)| count.judged > 0)
    .map(|(level, count)| format!("{level} {}/{}", count.held, count.judged))
    .collect();
    parts.join(" · ")
}

/// What became of the baseline, line by line.
pub(crate) fn baseline(run: &Run) -> Vec<String> {
    let Some(comparison) = run.baseline.as_ref().filter(|known| known.with.is_some()) else {
        return Vec::new();
    };
    let mut lines = vec![comparison.told()];
    lines.extend(
        comparison
            .worse
            .iter()
            .map(|change| format!("worse: {change}")),
    );
    lines
}

/// How soon an operation was answered rightly, and for good; without known answers, how soon it was
/// answered, and in the same way. `after` stands before a time.
pub(crate) fn readiness(of: &OperationTimeline, known: bool, after: &str) -> String {
    use crate::text::duration;
    match (known, of.first_right_us, of.stable_us) {
        (true, Some(first), Some(stable)) => format!(
            "right{after} {}, stable{after} {}",
            duration(first),
            duration(stable)
        ),
        (true, Some(first), None) => format!("right{after} {}, never stable", duration(first)),
        (true, None, _) => "never right".to_owned(),
        (false, Some(first), Some(stable)) => format!(
            "answered{after} {}, the same thrice{after} {}",
            duration(first),
            duration(stable)
        ),
        (false, Some(first), None) => {
            format!("answered{after} {}, never the same thrice", duration(first))
        }
        (false, None, _) => "no result".to_owned(),
    }
}

/// What a verdict is called in this kind of run.
pub(crate) const fn verdict(kind: RunKind, verdict: Verdict) -> &'static str {
    match (kind, verdict) {
        (RunKind::Power, Verdict::Pass) => "killed",
        (RunKind::Power, Verdict::Fail) => "survived",
        (RunKind::Power, Verdict::Untestable) => "broken",
        (_, Verdict::NotApplicable) => "not applicable",
        (_, Verdict::HarnessError) => "harness error",
        (_, verdict) => verdict.as_str(),
    }
}

/// Events in a line each: number, time, and a mark at what decided, below each other whatever their
/// numbers are.
pub(crate) fn evidence(events: &[Evidence]) -> impl Iterator<Item = String> {
    moments(events).zip(events).map(|(moment, event)| {
        let mark = if event.decisive { ">" } else { " " };
        format!("{mark} {moment} {}", event.text)
    })
}

/// Number and time of each event, all equally wide.
pub(crate) fn moments(events: &[Evidence]) -> impl Iterator<Item = String> {
    let digits = |event: &Evidence| event.seq.checked_ilog10().unwrap_or(0) as usize + 1;
    let width = events.iter().map(digits).max().unwrap_or(1);
    events.iter().map(move |event| {
        let at = crate::text::duration(event.at_us);
        format!("#{:<width$} {at:>8}", event.seq)
    })
}

/// How many cases came to what, the weightiest first: `1 fail · 29 pass`.
pub(crate) fn tally(kind: RunKind, verdicts: impl IntoIterator<Item = Verdict>) -> String {
    let mut counts: BTreeMap<Verdict, u64> = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry(verdict).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(verdict, _)| std::cmp::Reverse(verdict.weight()));
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(of, count)| format!("{count} {}", verdict(kind, of)))
        .collect();
    parts.join(" · ")
}

/// Reason → the clauses that nothing judged for it. A clause whose cases are all not applicable
/// has not been judged either, for the reason that its cases give.
pub(crate) fn not_judged(run: &Run) -> Vec<(&str, Vec<&str>)> {
    let messages: BTreeMap<&str, &str> = run
        .cases
        .iter()
        .filter(|case| case.verdict == Verdict::NotApplicable)
        .map(|case| (case.id.as_str(), case.message.as_str()))
        .collect();
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for clause in &run.coverage {
        let reason = match (&clause.not_run, clause.verdict) {
            (Some(reason), _) => reason.as_str(),
            // A probe says so on its own line already.
            (None, Some(Verdict::NotApplicable)) if run.subject.kind.is_harness() => clause
                .cases
                .iter()
                .find_map(|id| messages.get(id.as_str()).copied())
                .unwrap_or("not applicable"),
            (None, _) => continue,
        };
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, clauses)) => clauses.push(&clause.clause),
            None => by_reason.push((reason, vec![&clause.clause])),
        }
    }
    by_reason.sort_unstable();
    by_reason
}

/// A setting in a few words: of one with a long value the names in it that are set, since the whole
/// stands with the server itself.
pub(crate) fn setting(setting: &str) -> String {
    const LONG: usize = 44;
    if setting.chars().count() <= LONG {
        return setting.to_owned();
    }
    let mut set = Vec::new();
    if let Some((name, value)) = setting.split_once(": ")
        && let Ok(value) = serde_json::from_str(value)
    {
        names_in(&value, "", &mut set);
        if !set.is_empty() {
            return shortened(&format!("{name}: {}", set.join(", ")), 2 * LONG);
        }
    }
    shortened(setting, LONG)
}

/// The names of what is set in a value: `typescript.tsdk`.
fn names_in(value: &serde_json::Value, below: &str, names: &mut Vec<String>) {
    const MOST: usize = 4;
    match value.as_object().filter(|all| !all.is_empty()) {
        Some(all) => {
            for (name, value) in all {
                if names.len() < MOST {
                    let dot = if below.is_empty() { "" } else { "." };
                    names_in(value, &format!("{below}{dot}{name}"), names);
                }
            }
        }
        None if below.is_empty() => {}
        None => names.push(below.to_owned()),
    }
}

/// A text of at most so many columns, cut at its end.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let shown = clipped(text, most);
    match shown.strip_suffix('…').filter(|_| shown != text) {
        Some(kept) => format!("{}…", kept.trim_end()),
        None => shown,
    }
}

/// What a clause that servers are qualified by asks for, in a few words, for the head of a column.
pub(crate) fn clause_title(clause: &str) -> Option<&'static str> {
    const TITLES: [&str; 19] = [
        "starts",
        "UTF-16 columns",
        "opens, closes",
        "known answers",
        "text opened anew",
        "clean stdout",
        "legal shapes",
        "clean end",
        "exit code 0",
        "cancellation",
        "four operations",
        "after an emoji",
        "odd paths",
        "all references",
        "fifty in a row",
        "after SIGKILL",
        "without settings",
        "change on disk",
        "writes nothing",
    ];
    let number: usize = clause.strip_prefix("QUA-")?.parse().ok()?;
    TITLES.get(number.checked_sub(1)?).copied()
}

/// Clause ids in a row, three or more neighbours as a range: `CAN-1, CAN-3…6`.
pub(crate) fn clauses<S: AsRef<str>>(ids: &[S]) -> String {
    fn parts(id: &str) -> Option<(&str, u32)> {
        let (section, number) = id.rsplit_once('-')?;
        Some((section, number.parse().ok()?))
    }
    let follows = |a: &str, b: &str| match (parts(a), parts(b)) {
        (Some((section, a)), Some((other, b))) => section == other && a.checked_add(1) == Some(b),
        _ => false,
    };
    let mut shown: Vec<String> = Vec::new();
    let mut at = 0;
    while at < ids.len() {
        let mut last = at;
        while last + 1 < ids.len() && follows(ids[last].as_ref(), ids[last + 1].as_ref()) {
            last += 1;
        }
        if last - at >= 2 {
            let end = parts(ids[last].as_ref()).map_or(0, |(_, number)| number);
            shown.push(format!("{}…{end}", ids[at].as_ref()));
        } else {
            shown.extend(ids[at..=last].iter().map(|id| id.as_ref().to_owned()));
        }
        at = last + 1;
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_setting_is_named_by_what_it_sets() {
        let long = format!(
            r#"options: {{"a":{{"b":"{}","c":1}},"d":{{}}}}"#,
            "x".repeat(80)
        );
        assert_eq!(setting(&long), "options: a.b, a.c, d");
        assert_eq!(setting(r#"options: {"a":1}"#), r#"options: {"a":1}"#);
        assert_eq!(setting(&"y".repeat(80)), format!("{}…", "y".repeat(43)));
        let many: Vec<String> = (0..99).map(|name| format!("\"name-{name}\":1")).collect();
        let many = setting(&format!("options: {{{}}}", many.join(",")));
        assert_eq!(many, "options: name-0, name-1, name-2, name-3");
    }

    #[test]
    fn neighbours_are_a_range() {
        let ids = ["A-1", "A-2", "B-1", "B-2", "B-3", "B-5", "B-6", "C", "C-9"];
        assert_eq!(clauses(&ids), "A-1, A-2, B-1…3, B-5, B-6, C, C-9");
        assert_eq!(clauses::<&str>(&[]), "");
        assert_eq!(
            clauses(&["A-4294967295", "A-4294967295"]),
            "A-4294967295, A-4294967295"
        );
    }

    #[test]
    fn times_stand_below_each_other_whatever_the_numbers_are() {
        let event = |seq, at_us| Evidence {
            seq,
            at_us,
            text: "x".to_owned(),
            decisive: seq == 10,
        };
        let lines: Vec<String> =
            evidence(&[event(0, 5), event(9, 1_000), event(10, 2_000)]).collect();
        assert_eq!(
            lines,
            ["  #0      5 µs x", "  #9      1 ms x", "> #10     2 ms x"]
        );
    }

    #[test]
    fn the_weightiest_verdict_is_counted_first() {
        let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Pass];
        assert_eq!(tally(RunKind::Conformance, verdicts), "1 fail · 2 pass");
        assert_eq!(tally(RunKind::Power, verdicts), "1 survived · 2 killed");
    }
}
