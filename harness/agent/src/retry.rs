//! When a request that failed is sent again. Pure: the schedule tells durations, it reads no clock.

use std::time::Duration;

use crate::{ModelError, Retry};

/// How often, and how long apart, a request is sent again after a failure that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often the request is sent at most, the first time included. 0 counts as 1.
    pub max_attempts: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub first_delay: Duration,
    /// The longest pause. A model that asks for a longer one is not asked again.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }
}

/// Why the request is not sent again, as the end of a sentence about the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GiveUp {
    /// The failure is not one that passes.
    Final,
    /// It was sent as often as allowed.
    Exhausted(u32),
    /// The model asked for a longer pause than allowed.
    TooLong { asked: Duration, most: Duration },
}

impl GiveUp {
    /// The failure's message, with the reason why it was not tried again.
    pub(crate) fn explain(&self, message: &str) -> String {
        match self {
            Self::Final | Self::Exhausted(0 | 1) => message.to_owned(),
            Self::Exhausted(attempts) => format!("{message} (given up after {attempts} attempts)"),
            Self::TooLong { asked, most } => format!(
                "{message} (it asked to wait {} s, and at most {} s are waited; try again later)",
                asked.as_secs_f64(),
                most.as_secs_f64()
            ),
        }
    }
}

impl RetryPolicy {
    /// The pause before the request is sent again, `attempts` attempts having failed, the last one
    /// with `error`.
    pub(crate) fn pause(&self, attempts: u32, error: &ModelError) -> Result<Duration, GiveUp> {
        let Retry::After(asked) = error.retry else {
            return Err(GiveUp::Final);
        };
        if attempts >= self.max_attempts.max(1) {
            return Err(GiveUp::Exhausted(attempts));
        }
        let asked = asked.unwrap_or_default();
        if asked > self.max_delay {
            let most = self.max_delay;
            return Err(GiveUp::TooLong { asked, most });
        }
        let doublings = attempts.saturating_sub(1).min(31);
        let own = self.first_delay.saturating_mul(1 << doublings);
        Ok(own.min(self.max_delay).max(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 5,
        first_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(3),
    };

    fn transient(after: Option<Duration>) -> ModelError {
        ModelError::transient("X", "it broke", after)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_with_the_attempts() {
        let pauses: Vec<_> = (1..=5)
            .map(|attempts| POLICY.pause(attempts, &transient(None)))
            .collect();
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        assert_eq!(
            pauses,
            [
                seconds(1),
                seconds(2),
                seconds(3),
                seconds(3),
                Err(GiveUp::Exhausted(5))
            ]
        );
    }

    #[test]
    fn a_pause_that_the_model_asked_for_is_kept_unless_it_is_too_long() {
        let asked = Duration::from_millis(2500);
        assert_eq!(POLICY.pause(1, &transient(Some(asked))), Ok(asked));
        let asked = Duration::from_mins(10);
        let refused = POLICY.pause(1, &transient(Some(asked))).unwrap_err();
        assert_eq!(
            refused.explain("rate limited"),
            "rate limited (it asked to wait 600 s, and at most 3 s are waited; try again later)"
        );
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        let error = ModelError::fatal("X", "no such model");
        let refused = POLICY.pause(1, &error).unwrap_err();
        assert_eq!(refused, GiveUp::Final);
        assert_eq!(refused.explain(&error.message), "no such model");
    }

    #[test]
    fn extreme_settings_neither_panic_nor_loop() {
        let policy = RetryPolicy {
            max_attempts: u32::MAX,
            first_delay: Duration::MAX,
            max_delay: Duration::MAX,
        };
        assert_eq!(
            policy.pause(u32::MAX - 1, &transient(None)),
            Ok(Duration::MAX)
        );
        let none = RetryPolicy {
            max_attempts: 0,
            ..policy
        };
        assert_eq!(none.pause(1, &transient(None)), Err(GiveUp::Exhausted(1)));
    }
}
