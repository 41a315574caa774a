//! The clause records: complete, well-formed, with the levels and sides of the contract, and with a
//! current schema.

use std::fmt::Write as _;

use dsh_scenarios::{
    Clause, Clauses, ClausesError, Evidence, Judged, Level, Profile, Side, Source, clauses_schema,
};

/// Section, how many clauses it has, which of them are SHOULD, and whom they bind.
const CONTRACT: [(&str, u32, &[u32], &[Side]); 19] = [
    ("SEAM", 14, &[], &[Side::Harness]),
    ("CFG", 9, &[], &[Side::Harness]),
    ("ENV", 7, &[], &[Side::Harness]),
    ("HST", 9, &[], &[Side::Harness]),
    ("INI", 9, &[9], &[Side::Harness, Side::Wire]),
    ("OPN", 13, &[11, 12], &[Side::Harness, Side::Wire]),
    ("FRM", 10, &[10], &[Side::Harness]),
    ("NAV", 5, &[5], &[Side::Harness]),
    ("HOV", 5, &[5], &[Side::Harness]),
    ("SRQ", 7, &[7], &[Side::Harness]),
    ("ERR", 5, &[3, 4], &[Side::Harness]),
    ("CAN", 8, &[8], &[Side::Harness, Side::Wire]),
    ("CRS", 5, &[], &[Side::Harness]),
    ("DIS", 6, &[], &[Side::Harness]),
    ("WIRE", 8, &[8], &[Side::Wire]),
    ("TOOL", 13, &[], &[Side::Harness]),
    ("RUN", 16, &[], &[Side::Harness]),
    ("INS", 24, &[], &[Side::Harness]),
    (
        "QUA",
        19,
        &[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
        &[Side::Server],
    ),
];

/// Those whose sides differ from their section's.
const SIDES: [(&str, &[Side]); 4] = [
    ("FRM-1", &[Side::Wire]),
    ("DIS-1", &[Side::Harness, Side::Wire]),
    ("DIS-2", &[Side::Harness, Side::Wire]),
    ("DIS-3", &[Side::Harness, Side::Wire]),
];

/// The clauses of the contract, without the statements of LSP.
fn of_the_contract() -> impl Iterator<Item = &'static Clause> {
    let sections = Clauses::embedded().sections().iter();
    sections
        .filter(|section| section.section != "LSP")
        .flat_map(|section| &section.clauses)
}

#[test]
fn every_clause_of_the_contract_has_its_record() {
    let mut expected = String::new();
    for (section, count, should, sides) in CONTRACT {
        for number in 1..=count {
            let id = format!("{section}-{number}");
            let level = if should.contains(&number) {
                Level::Should
            } else {
                Level::Must
            };
            let own = SIDES
                .iter()
                .find_map(|(own, sides)| (*own == id).then_some(*sides));
            writeln!(expected, "{id} {level} {:?}", own.unwrap_or(sides)).unwrap();
        }
    }
    let mut recorded = String::new();
    for clause in of_the_contract() {
        writeln!(
            recorded,
            "{} {} {:?}",
            clause.id, clause.level, clause.sides
        )
        .unwrap();
    }
    assert_eq!(recorded, expected);
}

#[test]
fn profiles_follow_from_the_section() {
    for section in Clauses::embedded().sections() {
        if section.section == "LSP" {
            continue;
        }
        let own = match section.section.as_str() {
            "TOOL" => Profile::Tool,
            "RUN" => Profile::Runtime,
            "INS" => Profile::Instructions,
            "QUA" => Profile::Server,
            _ => Profile::Transient,
        };
        for clause in &section.clauses {
            assert!(clause.profiles.contains(&own), "{}", clause.id);
            let rest = clause.profiles.iter().filter(|profile| **profile != own);
            let allowed = if own == Profile::Transient {
                &[Profile::LspBase][..]
            } else {
                &[]
            };
            assert!(
                rest.into_iter().all(|profile| allowed.contains(profile)),
                "{}",
                clause.id
            );
        }
    }
}

/// Statements of LSP bind a client, a server or both, and say so by their profile too.
#[test]
fn statements_of_lsp_are_of_the_profile_of_their_side() {
    let sections = Clauses::embedded().sections().iter();
    let section = sections
        .into_iter()
        .find(|section| section.section == "LSP")
        .expect("it is there");
    assert_eq!(section.clauses.len(), 92);
    for clause in &section.clauses {
        let profiles: &[Profile] = match clause.sides.as_slice() {
            [Side::Harness] => &[Profile::LspBase],
            [Side::Server] => &[Profile::Server],
            [Side::Wire] => &[Profile::LspBase, Profile::Server],
            sides => panic!("{}: {sides:?}", clause.id),
        };
        assert_eq!(clause.profiles, profiles, "{}", clause.id);
        assert!(
            clause.see.is_empty() == clause.excluded.is_some(),
            "{}: it is judged by what it refers to, or not at all",
            clause.id
        );
    }
}

#[test]
fn what_no_subject_shows_is_marked() {
    let unseen: Vec<&str> = Clauses::embedded()
        .iter()
        .filter(|clause| {
            clause
                .judged
                .iter()
                .all(|judged| matches!(judged, Judged::Unit | Judged::Source))
        })
        .map(|clause| clause.id.as_str())
        .collect();
    assert_eq!(
        unseen,
        ["SEAM-13", "CFG-9", "FRM-9", "TOOL-12", "RUN-1", "RUN-2"]
    );
}

#[test]
fn statements_are_short_sentences_without_loose_ends() {
    for clause in Clauses::embedded().iter() {
        let text = &clause.statement;
        assert!(text.ends_with('.'), "{}: {text}", clause.id);
        assert!(
            !text.contains(['\n', '\t']) && !text.contains("  "),
            "{}: {text}",
            clause.id
        );
        assert!(text.len() <= 800, "{}: {} bytes", clause.id, text.len());
        assert_eq!(clause.since, "0.1.0", "{}", clause.id);
    }
}

#[test]
fn a_clause_of_the_protocol_says_where_it_stands() {
    for clause in Clauses::embedded().of_profile(Profile::LspBase) {
        let known = |source: &Source| matches!(source, Source::Lsp { .. } | Source::Seam);
        // Where LSP is silent nothing is a MUST.
        let silent = clause.level == Level::Should && clause.id.contains('/');
        assert!(silent || clause.sources.iter().any(known), "{}", clause.id);
    }
    for clause in Clauses::embedded().iter() {
        for (at, source) in clause.sources.iter().enumerate() {
            assert!(
                !clause.sources[..at].contains(source),
                "{}: {source} twice",
                clause.id
            );
            assert_eq!(source.to_string().parse(), Ok(source.clone()));
        }
    }
}

#[test]
fn a_clause_is_found_as_people_write_it() {
    let clauses = Clauses::embedded();
    assert_eq!(
        clauses.find("TOOL-6").map(|clause| clause.id.as_str()),
        Ok("TOOL-6")
    );
    assert_eq!(
        clauses.find(" tool-6 ").map(|clause| clause.id.as_str()),
        Ok("TOOL-6")
    );
    let worded = clauses.find("Base/Header/Sep").map(|clause| &*clause.id);
    assert_eq!(worded, Ok("base/header/sep"));
    let error = clauses.find("base/heder/sep").expect_err("no such clause");
    assert_eq!(error.nearest, "base/header/sep");
    for (typed, nearest) in [("TOL-6", "TOOL-6"), ("QUA4", "QUA-4"), ("opn-31", "OPN-1")] {
        let error = clauses.find(typed).expect_err("no such clause");
        assert_eq!(error.nearest, nearest);
        assert_eq!(
            error.to_string(),
            format!("there is no clause {typed:?}; did you mean {nearest}?")
        );
    }
    assert!(clauses.find("").is_err());
}

fn section(records: &[(&str, &str)]) -> String {
    let mut text = String::from("section: OPN\ntitle: A title\nclauses:\n");
    for (id, more) in records {
        let given = |key: &str| more.lines().any(|line| line.starts_with(key));
        writeln!(text, "  - id: {id}").expect("a string can be written to");
        for (key, value) in [
            ("level", "must"),
            ("sides", "[harness]"),
            ("profiles", "[transient]"),
            ("sources", "[S1]"),
            ("judged", "[wire]"),
            ("statement", "Something."),
            ("since", "0.1.0"),
        ] {
            if !given(key) {
                writeln!(text, "    {key}: {value}").expect("a string can be written to");
            }
        }
        for line in more.lines() {
            writeln!(text, "    {line}").expect("a string can be written to");
        }
    }
    text
}

fn refused(records: &[(&str, &str)]) -> ClausesError {
    let text = section(records);
    Clauses::parse([("opn.yaml", text.as_str())]).expect_err("these records are bad")
}

#[test]
fn good_records_are_read() {
    let text = section(&[
        ("OPN-1", ""),
        ("OPN-7", "sources: ['host policy: all of it', S2]"),
    ]);
    let clauses = Clauses::parse([("opn.yaml", text.as_str())]).unwrap();
    assert_eq!(clauses.iter().count(), 2);
    assert_eq!(
        clauses.get("OPN-7").unwrap().sources,
        [
            Source::Policy {
                part: Some("all of it".to_owned())
            },
            Source::Instructions
        ]
    );
}

#[test]
fn bad_records_are_refused_by_name() {
    for id in [
        "OPN-0", "OPN-01", "OPN-", "OPN", "opn-1", "CAN-1", "OPN-1a", "OPN--1", "OPN-+1",
    ] {
        let error = refused(&[(id, "")]);
        assert!(
            matches!(&error, ClausesError::MalformedId { id: named, .. } if named == id),
            "{id}"
        );
    }
    for second in ["OPN-2", "OPN-1"] {
        let error = refused(&[("OPN-2", ""), (second, "")]);
        assert!(
            matches!(&error, ClausesError::OutOfOrder { id, .. } if id == second),
            "{error}"
        );
    }
    for key in ["sides", "profiles", "sources", "judged"] {
        let error = refused(&[("OPN-1", &format!("{key}: []"))]);
        assert!(
            matches!(&error, ClausesError::Empty { key: named, .. } if *named == key),
            "{error}"
        );
    }
    for unreadable in [
        "level: may",
        "sides: [client]",
        "sources: [S4]",
        "sources: ['host policy:']",
        "extra: 1",
    ] {
        let error = refused(&[("OPN-1", unreadable)]);
        assert!(
            matches!(&error, ClausesError::Unreadable { .. }),
            "{unreadable}: {error}"
        );
        assert!(error.to_string().starts_with("opn.yaml: "), "{error}");
    }
    let refers = |to: &str| refused(&[("OPN-1", "see: [OPN-2]"), ("OPN-2", to)]);
    for (to, problem) in [
        (
            "see: [OPN-1]",
            "OPN-1 refers to OPN-2, which refers to others itself",
        ),
        (
            "excluded: not yet",
            "OPN-1 refers to OPN-2, which nothing judges",
        ),
    ] {
        let error = refers(to);
        assert!(error.to_string().ends_with(problem), "{error}");
    }
    for (record, problem) in [
        ("see: [OPN-9]", "OPN-1 refers to OPN-9, which is no clause"),
        (
            "see: [shape]\nexcluded: why",
            "OPN-1 has both `see` and `excluded`; give one",
        ),
        ("excluded: ''", "OPN-1 has no excluded; give at least one"),
    ] {
        let error = refused(&[("OPN-1", record)]);
        assert!(error.to_string().ends_with(problem), "{error}");
    }
    let worded = section(&[("base/header", ""), ("Base/header", "")]).replace(": OPN", ": LSP");
    let error = Clauses::parse([("lsp.yaml", worded.as_str())]).expect_err("a capital letter");
    assert_eq!(
        error.to_string(),
        "lsp.yaml: \"Base/header\" is no id of this section: write words in lower case with \
         slashes, such as base/header/sep"
    );
    let twice = section(&[("a/b", ""), ("a/b", "")]).replace(": OPN", ": LSP");
    let error = Clauses::parse([("lsp.yaml", twice.as_str())]);
    assert!(matches!(error, Err(ClausesError::OutOfOrder { id, .. }) if id == "a/b"));
    let twice = section(&[("OPN-1", "")]);
    let error = Clauses::parse([("a.yaml", twice.as_str()), ("b.yaml", twice.as_str())]);
    assert!(matches!(error, Err(ClausesError::OutOfOrder { file, .. }) if file == "b.yaml"));
}

#[test]
fn the_committed_schema_is_current() {
    assert_eq!(
        include_str!("../schema/clauses.schema.json"),
        format!("{:#}\n", clauses_schema()),
        "write it again: cargo run -p dsh-scenarios --example clauses_schema > scenarios/schema/clauses.schema.json"
    );
}

#[test]
fn the_embedded_evidence_can_be_read_and_names_only_clauses() {
    for id in Evidence::embedded().ids() {
        assert!(Clauses::embedded().get(id).is_some(), "{id}");
    }
}

#[test]
fn evidence_is_written_as_it_is_read() {
    let mut evidence = Evidence::default();
    let source = "/// OPN-1, OPN-2, UTF-16\n#[test]\nfn opens() {}\n";
    evidence.add("harness/lsp/src/lib.rs", source);
    evidence.add("harness/lsp/src/lib.rs", source);
    evidence.add("elsewhere/lib.rs", source);
    let json = evidence.to_json(Clauses::embedded());
    let read = Evidence::parse(&json).unwrap();
    let [witness] = read.of("OPN-1") else {
        panic!("{json}")
    };
    assert_eq!(witness.command(), "cargo test -p dsh-lsp opens");
    assert_eq!(witness.to_string(), "test opens (harness/lsp/src/lib.rs)");
    assert_eq!(read.ids().collect::<Vec<_>>(), ["OPN-1", "OPN-2"]);
    assert_eq!(read.to_json(Clauses::embedded()), json);
    assert!(read.of("OPN-3").is_empty());
}
