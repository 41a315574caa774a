use super::*;

struct Given {
    scope: Scope,
    loaded: Option<String>,
    fact: Fact,
}

/// A candidate of a directory; `content` as the model has it and as it is on disk.
fn given(dir: &str, name: &str, loaded: Option<&str>, fact: Fact) -> Given {
    Given {
        scope: Scope {
            path: Path::new(dir).join(name),
            area: dir.to_owned(),
            shown: format!("{dir}/{name}"),
            rank: (Some(1), dir.into(), 0),
        },
        loaded: loaded.map(|content| Digests::of(content).raw),
        fact,
    }
}

fn present(content: &str) -> Fact {
    Fact::Present(Digests::of(content))
}

#[track_caller]
fn check(given: &[Given], expected: &[Delta]) {
    let candidates: Vec<_> = given
        .iter()
        .map(|given| Candidate {
            scope: &given.scope,
            loaded: given.loaded.as_deref(),
            fact: &given.fact,
        })
        .collect();
    assert_eq!(reconcile(&candidates), expected);
}

/// INS-5, INS-6, INS-8.
#[test]
fn one_candidate() {
    use Delta::{Add, Keep, Remove, Update};
    for (loaded, fact, expected) in [
        (None, Fact::Absent, Keep),
        (None, present("a"), Add),
        (Some("a"), present("a"), Keep),
        (Some("a"), present("a "), Update),
        (Some("a"), Fact::Absent, Remove),
        (None, Fact::Unavailable(None), Keep),
        (Some("a"), Fact::Unavailable(None), Keep),
        (Some("a"), Fact::Unavailable(Some(Digests::of("b"))), Keep),
    ] {
        check(&[given("/p", "A", loaded, fact)], &[expected]);
    }
}

/// INS-3: equal after trimming is equal, the earliest stands, and only within one directory.
#[test]
fn equal_candidates_of_a_directory_collapse_to_the_earliest() {
    use Delta::{Add, Keep, Remove, Update};
    let (a, b) = (
        |loaded, fact| given("/p", "A", loaded, fact),
        |loaded, fact| given("/p", "B", loaded, fact),
    );
    check(
        &[a(None, present("x")), b(None, present(" x\n"))],
        &[Add, Keep],
    );
    check(&[a(None, present("x")), b(None, present("y"))], &[Add, Add]);
    check(
        &[a(Some("x"), present("x")), b(Some("y"), present("x\n"))],
        &[Keep, Remove],
    );
    check(
        &[a(Some("x"), present("y")), b(Some("y"), present("y"))],
        &[Update, Remove],
    );
    check(
        &[a(Some("x"), Fact::Absent), b(None, present("x"))],
        &[Remove, Add],
    );
    check(
        &[
            given("/p", "A", None, present("x")),
            given("/p/q", "A", None, present("x")),
        ],
        &[Add, Add],
    );
}

/// INS-3: a third one collapses too, also when a directory's candidates do not stand together.
#[test]
fn candidates_of_a_directory_are_found_wherever_they_stand() {
    use Delta::{Add, Keep};
    check(
        &[
            given("/p", "A", None, present("x")),
            given("/q", "A", None, present("x")),
            given("/p", "B", None, present("x ")),
            given("/p", "L", None, present("\tx")),
        ],
        &[Add, Add, Keep, Keep],
    );
}

/// INS-3, INS-9: an earlier candidate that cannot be read says what it said.
#[test]
fn a_loaded_candidate_that_cannot_be_read_still_counts() {
    use Delta::{Add, Keep, Remove};
    let last = Fact::Unavailable(Some(Digests::of("x")));
    let (a, b) = (
        |loaded, fact| given("/p", "A", loaded, fact),
        |loaded, fact| given("/p", "B", loaded, fact),
    );
    check(
        &[a(Some("x"), last.clone()), b(None, present(" x"))],
        &[Keep, Keep],
    );
    check(
        &[a(Some("x"), last.clone()), b(Some("x"), present("x"))],
        &[Keep, Remove],
    );
    check(
        &[a(Some("x"), Fact::Unavailable(None)), b(None, present("x"))],
        &[Keep, Keep],
    );
    check(&[a(None, last), b(None, present("x"))], &[Keep, Add]);
}
