//! Finding the clause ids that a Rust source witnesses.
//!
//! A test names its clauses in its doc comment: ids like `OPN-3`, or `OPN-3…5` for several. A probe
//! names its clause in a string literal of its own in the table of probes.
//! This reads lines, not Rust: it relies on `rustfmt`, which CI checks.

use super::WitnessKind;

/// What `text` witnesses: clause id, kind, name.
pub(super) fn witnesses(file: &str, text: &str) -> Vec<(String, WitnessKind, String)> {
    let mut found = tests(text);
    if file == "e2e/src/probes.rs" {
        found.extend(probes(text));
    }
    found
}

fn tests(text: &str) -> Vec<(String, WitnessKind, String)> {
    let mut found = Vec::new();
    let mut head = Head::default();
    let mut properties = Block::default();
    for line in text.lines() {
        properties.see(line);
        let code = line.trim();
        if head.in_attribute || code.starts_with("#[") {
            head.is_test |= code.contains("test");
            head.in_attribute = !code.ends_with(']');
        } else if let Some(doc) = code.strip_prefix("///") {
            head.ids.extend(clause_ids(doc));
        } else {
            let head = std::mem::take(&mut head);
            if let Some(name) = function_name(code)
                && (head.is_test || properties.is_open())
            {
                let witness = |id| (id, WitnessKind::Test, name.to_owned());
                found.extend(head.ids.into_iter().map(witness));
            }
        }
    }
    found
}

/// What stands in front of an item: its documentation and attributes.
#[derive(Default)]
struct Head {
    ids: Vec<String>,
    is_test: bool,
    in_attribute: bool,
}

fn probes(text: &str) -> Vec<(String, WitnessKind, String)> {
    let production = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in production
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        for literal in line.split('"').skip(1).step_by(2) {
            if let [id] = clause_ids(literal).as_slice()
                && id == literal
            {
                found.push((id.clone(), WitnessKind::Probe, id.clone()));
            }
        }
    }
    found
}

/// Whether the current line is within a `proptest!` block, whose functions are all tests.
#[derive(Default)]
struct Block {
    closing: Option<String>,
}

impl Block {
    fn see(&mut self, line: &str) {
        let code = line.trim_start();
        if code.starts_with("proptest!") && code.ends_with('{') {
            self.closing = Some(format!("{}}}", &line[..line.len() - code.len()]));
        } else if self.closing.as_deref() == Some(line) {
            self.closing = None;
        }
    }

    fn is_open(&self) -> bool {
        self.closing.is_some()
    }
}

fn function_name(code: &str) -> Option<&str> {
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let code = code.strip_prefix("async ").unwrap_or(code);
    let rest = code.strip_prefix("fn ")?;
    let end = rest.find(|character: char| !(character.is_alphanumeric() || character == '_'))?;
    Some(&rest[..end])
}

/// The clause ids in a text: `SEAM-1`, and `SEAM-1…3` as three of them.
fn clause_ids(text: &str) -> Vec<String> {
    /// No section comes near to it, so that a slip of the pen stays a slip.
    const LONGEST_RANGE: u32 = 99;

    let mut ids = Vec::new();
    let mut rest = text;
    while let Some(dash) = rest.find('-') {
        let section = trailing_capitals(&rest[..dash]);
        let after = &rest[dash + 1..];
        let digits = leading_digits(after);
        rest = &after[digits.len()..];
        let Ok(first) = digits.parse::<u32>() else {
            continue;
        };
        if !(3..=4).contains(&section.len()) {
            continue;
        }
        let mut last = first;
        if let Some(tail) = rest.strip_prefix('…') {
            let end = leading_digits(tail);
            if let Ok(number) = end.parse::<u32>() {
                last = number.min(first + LONGEST_RANGE);
                rest = &tail[end.len()..];
            }
        }
        ids.extend((first..=last).map(|number| format!("{section}-{number}")));
    }
    ids
}

fn trailing_capitals(text: &str) -> &str {
    let start = text
        .trim_end_matches(|character: char| character.is_ascii_uppercase())
        .len();
    let joined = text[..start]
        .ends_with(|character: char| character.is_alphanumeric() || matches!(character, '-' | '_'));
    if joined { "" } else { &text[start..] }
}

fn leading_digits(text: &str) -> &str {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str, text: &str) -> Vec<String> {
        witnesses(file, text)
            .into_iter()
            .map(|(id, kind, name)| format!("{id} {kind:?} {name}"))
            .collect()
    }

    #[test]
    fn ids_are_found_in_words() {
        let ids = |text| clause_ids(text).join(" ");
        assert_eq!(
            ids("SEAM-1, (CFG-12) and `OPN-3`: text"),
            "SEAM-1 CFG-12 OPN-3"
        );
        assert_eq!(ids("DIS-2…4."), "DIS-2 DIS-3 DIS-4");
        assert_eq!(
            ids("SEAM-x, LSP_A-1, xTOOL-1, -32601, A-1, LONGER-1, QUA-"),
            ""
        );
        assert_eq!(ids("OPN-1…99999999").split(' ').count(), 100);
    }

    #[test]
    fn a_test_names_clauses_in_its_documentation() {
        let text = r#"
/// SEAM-1: not a test.
pub fn helper() {}

/// SEAM-2: spread
/// over lines, SEAM-3.
#[test]
fn first() {}

/// SEAM-4
#[tokio::test(flavor = "current_thread")]
#[expect(
    clippy::unwrap_used,
    reason = "none"
)]
async fn second() {}

/// SEAM-5: of a struct
struct S;

#[test]
fn third() {}
"#;
        assert_eq!(
            named("harness/lsp/src/lib.rs", text),
            [
                "SEAM-2 Test first",
                "SEAM-3 Test first",
                "SEAM-4 Test second"
            ]
        );
    }

    #[test]
    fn functions_in_a_property_block_are_tests() {
        let text = "
    proptest! {
        /// FRM-3: any cut.
        fn cuts(x in 0..1) {
        }
    }

    /// FRM-4
    fn helper() {}
";
        assert_eq!(named("harness/lsp/src/lib.rs", text), ["FRM-3 Test cuts"]);
    }

    #[test]
    fn a_probe_names_its_clause_in_a_literal() {
        let text = r#"
// "QUA-3"
let case = case("QUA-4", "see QUA-5");
#[cfg(test)]
mod tests { "QUA-7" }
"#;
        assert_eq!(named("e2e/src/probes.rs", text), ["QUA-4 Probe QUA-4"]);
        assert!(named("harness/lsp/src/lib.rs", text).is_empty());
    }
}
