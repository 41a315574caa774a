use serde_json::json;

use super::super::*;
use super::rig::{Rig, ask, full_capabilities, policy};

/// A place in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Starting,
    DuringHandshake,
    BetweenTurns,
    OpenUntouched,
    OpenHalf,
    RequestUntouched,
    RequestHalf,
    InFlight,
    HeaderHalf,
    BodyHalf,
    Grace,
    CloseHalf,
}

impl Place {
    const ALL: [Self; 12] = [
        Self::Starting,
        Self::DuringHandshake,
        Self::BetweenTurns,
        Self::OpenUntouched,
        Self::OpenHalf,
        Self::RequestUntouched,
        Self::RequestHalf,
        Self::InFlight,
        Self::HeaderHalf,
        Self::BodyHalf,
        Self::Grace,
        Self::CloseHalf,
    ];

    fn rig(self) -> Rig {
        let begun = |written: Option<usize>| {
            let mut rig = Rig::serving(policy());
            rig.machine.begin(ask(Operation::Hover));
            rig.write(written.unwrap_or(0));
            rig
        };
        let open = || {
            let mut rig = begun(None);
            let mut length = 0;
            while rig.methods().is_empty() {
                rig.write(1);
                length += 1;
            }
            length
        };
        match self {
            Self::Starting | Self::DuringHandshake => {
                let mut rig = Rig::fresh(policy());
                rig.machine.begin(ask(Operation::Hover));
                if self == Self::DuringHandshake {
                    rig.flush();
                }
                rig
            }
            Self::BetweenTurns => Rig::serving(policy()),
            Self::OpenUntouched => begun(None),
            Self::OpenHalf => begun(Some(20)),
            Self::RequestUntouched => begun(Some(open())),
            Self::RequestHalf => begun(Some(open() + 20)),
            Self::InFlight => Rig::asking(policy()).0,
            Self::HeaderHalf => {
                let mut rig = Rig::asking(policy()).0;
                rig.say_raw(b"Content-Le");
                rig
            }
            Self::BodyHalf => {
                let mut rig = Rig::asking(policy()).0;
                rig.say_raw(b"Content-Length: 99\r\n\r\n{\"id\"");
                rig
            }
            Self::Grace => {
                let mut rig = Rig::asking(policy()).0;
                rig.machine.cancel();
                rig.flush();
                rig
            }
            Self::CloseHalf => {
                let (mut rig, id) = Rig::asking(policy());
                rig.reply(id, &json!(null));
                rig.write(20);
                assert!(rig.machine.take_settled().is_some());
                rig
            }
        }
    }

    /// Whether a query's caller waits there.
    fn waits(self) -> bool {
        !matches!(self, Self::BetweenTurns | Self::Grace | Self::CloseHalf)
    }
}

/// CRS-1, CRS-2: a death is noticed at every place, by whatever sign comes first; the query is
/// failed there unless it had not begun.
#[test]
fn a_death_is_noticed_everywhere() {
    for place in Place::ALL {
        for order in [
            [0, 1, 2],
            [1, 0, 2],
            [2, 0, 1],
            [2, 1, 0],
            [0, 2, 1],
            [1, 2, 0],
        ] {
            let mut rig = place.rig();
            let mut signs = [false; 3];
            for sign in order {
                match sign {
                    0 => rig.machine.output_closed(),
                    1 => rig.machine.exited(),
                    _ => rig.machine.input_closed(Some("broken pipe".to_owned())),
                }
                signs[sign] = true;
                assert!(rig.machine.is_dying());
                if signs[0] && signs[1] {
                    rig.is_failed(&Failure::Died);
                } else {
                    assert_eq!(rig.reason(), Some(TimerReason::Dying), "{place:?}");
                }
            }
            assert_eq!(rig.machine.is_asking(), place.waits(), "{place:?}");
            assert_eq!(
                rig.machine.is_unserved(),
                place == Place::OpenUntouched,
                "{place:?}"
            );
            assert_eq!(rig.machine.take_settled(), None);
        }
    }
}

/// CRS-1: a process that closes one of its pipes and lives on fails its query too, soon.
#[test]
fn a_closed_pipe_is_a_death() {
    for place in Place::ALL {
        let mut rig = place.rig();
        rig.machine.output_closed();
        assert_eq!(
            rig.machine.timer().map(|timer| timer.after),
            Some(LAST_SIGNS)
        );
        rig.machine.timer_fired();
        rig.is_failed(&Failure::OutputClosed);

        let mut rig = place.rig();
        rig.machine.input_closed(Some("broken pipe".to_owned()));
        assert_eq!(rig.machine.pending(), b"");
        rig.machine.input_closed(None);
        rig.machine.timer_fired();
        rig.is_failed(&Failure::InputClosed(Some("broken pipe".to_owned())));

        // A helper may hold the pipes open.
        let mut rig = place.rig();
        rig.machine.exited();
        rig.machine.timer_fired();
        rig.is_failed(&Failure::Died);
    }
}

/// CRS-1: what a dying process still said counts; it answered.
#[test]
fn the_last_answer_counts() {
    let (mut rig, id) = Rig::asking(policy());
    rig.machine.exited();
    rig.machine.input_closed(None);
    rig.reply(id, &json!({"contents": "last words"}));
    assert!(matches!(
        rig.machine.take_settled(),
        Some(Ok(QueryResult::Hover { hover: Some(_) }))
    ));
    assert_eq!(rig.machine.failure(), None);
    rig.machine.output_closed();
    rig.is_failed(&Failure::Died);
    assert!(!rig.machine.is_asking());
}

/// CRS-1: how much of a message had come is known.
#[test]
fn a_death_in_the_middle_of_a_message_is_told_apart() {
    for (place, expected) in [
        (Place::InFlight, Partial::Nothing),
        (Place::HeaderHalf, Partial::Header { received: 10 }),
        (
            Place::BodyHalf,
            Partial::Body {
                received: 5,
                announced: 99,
            },
        ),
    ] {
        let mut rig = place.rig();
        rig.machine.output_closed();
        assert_eq!(rig.machine.partial(), expected);
    }
}

/// CRS-1: requests of a process that no longer listens are not answered, and cost nothing.
#[test]
fn nobody_is_answered_who_does_not_listen() {
    let (mut rig, _) = Rig::asking(policy());
    rig.machine.input_closed(None);
    rig.request(&json!(1), "client/registerCapability");
    assert_eq!(rig.machine.pending(), b"");
}

/// INI-7: a handshake that ends by death leaves no serving machine.
#[test]
fn a_death_during_the_handshake_is_final() {
    let mut rig = Place::DuringHandshake.rig();
    rig.machine.output_closed();
    rig.machine.exited();
    rig.reply(1, &full_capabilities());
    assert!(!rig.machine.is_serving());
    rig.is_failed(&Failure::Died);
}
