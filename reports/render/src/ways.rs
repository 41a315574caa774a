//! What a client has to do, by what a server made of each way of a client that was tried.
//!
//! A way that goes wrong where the usual one does not names what a client must not leave out. Where
//! the usual way itself goes wrong, the first other way in which every question came right is what
//! helps.

use crate::measured::{NO_WORSE, Persona, PersonaOutcome};

/// The name of the way that others are compared with.
pub(crate) const USUAL: &str = "usual";

/// Ways that change more than how a server is ended, the cheapest for a client first, with what they
/// ask of it.
const HELPFUL: [(&str, &str); 8] = [
    (
        "configuration-empty",
        "Answer workspace/configuration with {} for each item (configuration: {} in the row).",
    ),
    (
        "configuration-given",
        "Answer workspace/configuration with its settings (configuration in the row).",
    ),
    (
        "configuration-null",
        "Answer workspace/configuration with null for each item (configuration: null in the row).",
    ),
    (
        "configuration-announced",
        "Send workspace/didChangeConfiguration right after initialized (announceConfiguration: true \
         in the row).",
    ),
    (
        "configuration-empty-announced",
        "Answer workspace/configuration with {} for each item, and send \
         workspace/didChangeConfiguration right after initialized (configuration: {} and \
         announceConfiguration: true in the row).",
    ),
    (
        "configuration-unsupported",
        "Do not announce the capability workspace.configuration.",
    ),
    (
        "progress-announced",
        "Announce window.workDoneProgress, and take every progress.",
    ),
    (
        "requests-refused",
        "Refuse the requests of the server with -32601.",
    ),
];

/// The forms of `shutdown` and `exit`, as a client writes them.
const FORMS: [(&str, &str); 3] = [
    (
        "shutdown-params-absent",
        "Write shutdown and exit without params.",
    ),
    (
        "shutdown-params-null",
        "Write shutdown and exit with params null.",
    ),
    (
        "shutdown-params-empty",
        "Write shutdown and exit with params {}.",
    ),
];

/// Whether a client's way is worth telling.
pub(crate) const fn is_bad(outcome: PersonaOutcome) -> bool {
    !matches!(outcome, PersonaOutcome::Fine | PersonaOutcome::NotAsked)
}

/// Whether a way goes wrong just as the usual one does, so that it is told once.
pub(crate) fn is_as_usual(persona: &Persona, all: &[Persona]) -> bool {
    let Some(usual) = all.iter().find(|known| known.name == USUAL) else {
        return false;
    };
    let nothing_right = persona.first_right_us.is_none() && usual.first_right_us.is_none();
    persona.name != USUAL
        && persona.outcome == usual.outcome
        && match persona.outcome {
            PersonaOutcome::DoesNotEnd => persona.detail == usual.detail,
            PersonaOutcome::Wrong | PersonaOutcome::Silent => nothing_right,
            PersonaOutcome::Dead | PersonaOutcome::Fine | PersonaOutcome::NotAsked => true,
        }
}

/// What helps against what came of a way: what a client has to do. Nothing where the way is fine,
/// or is told with the usual one.
pub(crate) fn advice(persona: &Persona, all: &[Persona]) -> Option<&'static str> {
    if !is_bad(persona.outcome) || is_as_usual(persona, all) {
        return None;
    }
    let fine = |name: &str| {
        let mut known = all.iter().filter(|known| known.name == name);
        known.any(|known| known.outcome == PersonaOutcome::Fine)
    };
    let form = || {
        let mut forms = FORMS.into_iter();
        forms.find(|(name, _)| fine(name)).map(|(_, advice)| advice)
    };
    if persona.outcome == PersonaOutcome::DoesNotEnd {
        return Some(form().unwrap_or(
            "Close its stdin after exit, and end its whole process group when its time is over.",
        ));
    }
    Some(match persona.name.as_str() {
        USUAL => {
            let mut ways = HELPFUL.into_iter();
            ways.find(|(name, _)| all.iter().any(|way| way.name == *name && is_better(way)))
                .map_or(
                    "None of the other ways that were tried, so it is not about how a client behaves: \
                     what fails is told under its clause.",
                    |(_, advice)| advice,
                )
        }
        "requests-refused" => {
            "Answer every request of the server with a result, null where there is nothing to say, \
             and refuse none."
        }
        "requests-unanswered" => {
            "Answer every request of the server at once, also while a question of the client is open."
        }
        "configuration-null" if fine("configuration-empty") => {
            "Answer workspace/configuration with {} for each item, not with null."
        }
        "configuration-empty" if fine("configuration-null") => {
            "Answer workspace/configuration with null for each item, not with {}."
        }
        "configuration-null" | "configuration-empty" if fine(USUAL) => {
            "Answer workspace/configuration with the configuration of the row that mounts it."
        }
        "configuration-null" | "configuration-empty" | "configuration-given" => {
            "Answer workspace/configuration with other settings than these."
        }
        "configuration-announced" | "configuration-empty-announced" => {
            "Do not send workspace/didChangeConfiguration right after initialized \
             (announceConfiguration: false in the row)."
        }
        "configuration-unsupported" => {
            "Announce the capability workspace.configuration, and answer workspace/configuration."
        }
        "progress-announced" => "Do not announce window.workDoneProgress.",
        name if FORMS.iter().any(|(form, _)| *form == name) => {
            form().unwrap_or("None of the three forms of params; end its process group.")
        }
        _ => "Behave as in the usual way.",
    })
}

/// Whether every question came right in it: a way is called fine also where it is only no worse than
/// the usual one.
fn is_better(way: &Persona) -> bool {
    let no_worse = way
        .detail
        .as_deref()
        .is_some_and(|of| of.contains(NO_WORSE));
    way.outcome == PersonaOutcome::Fine && way.first_right_us.is_some() && !no_worse
}

#[cfg(test)]
mod tests {
    use super::*;
    use PersonaOutcome::{Dead, DoesNotEnd, Fine, NotAsked, Silent, Wrong};

    fn way(name: &str, outcome: PersonaOutcome) -> Persona {
        Persona {
            name: name.to_owned(),
            summary: String::new(),
            outcome,
            detail: None,
            first_right_us: (outcome == Fine).then_some(5),
        }
    }

    fn told(all: &[Persona], name: &str) -> Option<&'static str> {
        advice(all.iter().find(|way| way.name == name).unwrap(), all)
    }

    #[test]
    fn each_way_that_goes_wrong_beside_a_usual_one_that_does_not_has_a_remedy() {
        for (name, says) in [
            ("requests-refused", "refuse none"),
            ("requests-unanswered", "Answer every request"),
            ("configuration-null", "the configuration of the row"),
            ("configuration-empty", "the configuration of the row"),
            ("configuration-announced", "Do not send workspace/didChange"),
            ("configuration-empty-announced", "Do not send workspace/"),
            ("configuration-unsupported", "Announce the capability"),
            ("progress-announced", "Do not announce window.workDone"),
            ("shutdown-params-null", "without params"),
            ("of-tomorrow", "usual way"),
        ] {
            for outcome in [Wrong, Silent, Dead] {
                let all = [
                    way(USUAL, Fine),
                    way(name, outcome),
                    way("shutdown-params-absent", Fine),
                ];
                let advice = told(&all, name).unwrap();
                assert!(advice.contains(says), "{name}: {advice}");
                assert_eq!(told(&all, USUAL), None);
            }
        }
    }

    #[test]
    fn the_configuration_that_is_taken_is_named() {
        let all = [
            way(USUAL, Fine),
            way("configuration-null", Dead),
            way("configuration-empty", Fine),
        ];
        assert!(told(&all, "configuration-null").unwrap().contains("{}"));
        let all = [
            way(USUAL, Fine),
            way("configuration-null", Fine),
            way("configuration-empty", Silent),
        ];
        assert!(
            told(&all, "configuration-empty")
                .unwrap()
                .contains("null for")
        );
    }

    #[test]
    fn what_helps_where_the_usual_way_does_not_is_the_cheapest_way_that_came_right() {
        let mut all = [
            way(USUAL, Silent),
            way("shutdown-params-null", Fine),
            way("configuration-announced", Fine),
            way("configuration-empty-announced", Fine),
            way("configuration-null", NotAsked),
        ];
        let advice = told(&all, USUAL).unwrap();
        assert!(advice.starts_with("Send workspace/didChange"), "{advice}");
        // Fine is also what is no worse than the usual way: that helps nobody.
        all[2].detail = Some(format!(
            "{NO_WORSE}, which gets no right answer there either"
        ));
        let advice = told(&all, USUAL).unwrap();
        assert!(advice.contains("{} for each item, and send"), "{advice}");
        all[3].first_right_us = None;
        assert!(told(&all, USUAL).unwrap().contains("None of the other"));
    }

    #[test]
    fn a_form_of_shutdown_that_ends_it_is_named() {
        let all = [
            way(USUAL, DoesNotEnd),
            way("shutdown-params-null", Fine),
            way("shutdown-params-empty", DoesNotEnd),
        ];
        assert!(told(&all, USUAL).unwrap().contains("params null"));
        assert_eq!(told(&all, "shutdown-params-empty"), None);
        assert!(told(&all[..1], USUAL).unwrap().contains("process group"));
    }

    #[test]
    fn what_is_so_in_the_usual_way_is_told_there() {
        let mut all = [way(USUAL, Wrong), way("requests-refused", Wrong)];
        all[1].detail = Some("in 3.0 s".to_owned());
        assert_eq!(told(&all, "requests-refused"), None);
        // Less is right than in the usual way.
        all[0].first_right_us = Some(9);
        assert!(told(&all, "requests-refused").is_some());
        all[1].outcome = Dead;
        assert!(told(&all, "requests-refused").is_some());
    }
}
