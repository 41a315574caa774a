//! Settings of the host that change what a server does, each by itself.

use serde_json::Value;

use crate::catalogue::{EntryRemedy, Versions};
use crate::target::{Limits, Target};

/// One setting of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `announceConfiguration: true`.
    AnnounceConfiguration,
    /// `configuration`.
    Configuration(Value),
    /// `initializationOptions`.
    InitializationOptions(Value),
    /// `versions: rising`.
    RisingVersions,
    /// `retryStale`.
    RetryStale(u32),
    /// `shutdownTimeoutMs`.
    ShutdownTimeout(u64),
    /// Arguments behind those that the server is started with.
    Args(Vec<String>),
}

/// Settings that somebody says help, given together.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggested {
    /// What they are said to help against.
    pub against: String,
    /// The settings.
    pub settings: Vec<Setting>,
}

impl Suggested {
    pub(crate) fn of_entry(remedy: &EntryRemedy) -> Self {
        let mut settings = Vec::new();
        if !remedy.args.is_empty() {
            settings.push(Setting::Args(remedy.args.clone()));
        }
        if !remedy.initialization_options.is_null() {
            let options = remedy.initialization_options.clone();
            settings.push(Setting::InitializationOptions(options));
        }
        if !remedy.configuration.is_null() {
            settings.push(Setting::Configuration(remedy.configuration.clone()));
        }
        if remedy.announce_configuration {
            settings.push(Setting::AnnounceConfiguration);
        }
        if remedy.versions == Versions::Rising {
            settings.push(Setting::RisingVersions);
        }
        if remedy.retry_stale > 0 {
            settings.push(Setting::RetryStale(remedy.retry_stale));
        }
        settings.extend(remedy.shutdown_timeout_ms.map(Setting::ShutdownTimeout));
        Self {
            against: remedy.against.clone(),
            settings,
        }
    }
}

impl Setting {
    /// The settings that a target is given beyond the host's defaults. Its arguments are how it is
    /// started, and no settings.
    pub(crate) fn of(target: &Target) -> Vec<Self> {
        let mut settings = Vec::new();
        if !target.initialization_options.is_null() {
            let options = target.initialization_options.clone();
            settings.push(Self::InitializationOptions(options));
        }
        if !target.configuration.is_null() {
            settings.push(Self::Configuration(target.configuration.clone()));
        }
        if target.announce_configuration {
            settings.push(Self::AnnounceConfiguration);
        }
        if target.rising_versions {
            settings.push(Self::RisingVersions);
        }
        if target.retry_stale > 0 {
            settings.push(Self::RetryStale(target.retry_stale));
        }
        let default = Limits::default().shutdown_ms;
        let timeout = target.limits.map(|limits| limits.shutdown_ms);
        settings.extend(
            timeout
                .filter(|ms| *ms != default)
                .map(Self::ShutdownTimeout),
        );
        settings
    }

    /// As it is written in a deployment.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::AnnounceConfiguration => "announceConfiguration: true".to_owned(),
            Self::Configuration(value) => format!("configuration: {value}"),
            Self::InitializationOptions(value) => format!("initializationOptions: {value}"),
            Self::RisingVersions => "versions: rising".to_owned(),
            Self::RetryStale(times) => format!("retryStale: {times}"),
            Self::ShutdownTimeout(ms) => format!("shutdownTimeoutMs: {ms}"),
            Self::Args(args) => format!("args: {}", Value::from(args.clone())),
        }
    }

    /// Gives it to a target.
    pub(crate) fn give(&self, target: &mut Target) {
        match self {
            Self::AnnounceConfiguration => target.announce_configuration = true,
            Self::Configuration(value) => target.configuration = value.clone(),
            Self::InitializationOptions(value) => target.initialization_options = value.clone(),
            Self::RisingVersions => target.rising_versions = true,
            Self::RetryStale(times) => target.retry_stale = *times,
            Self::ShutdownTimeout(ms) => {
                let limits = target.limits.unwrap_or_default();
                target.limits = Some(Limits {
                    shutdown_ms: *ms,
                    ..limits
                });
            }
            Self::Args(args) => target.args.extend(args.iter().cloned()),
        }
    }

    /// Takes it from a target, which is then as the host's default has it.
    pub(crate) fn take(&self, target: &mut Target) {
        match self {
            Self::AnnounceConfiguration => target.announce_configuration = false,
            Self::Configuration(_) => target.configuration = Value::Null,
            Self::InitializationOptions(_) => target.initialization_options = Value::Null,
            Self::RisingVersions => target.rising_versions = false,
            Self::RetryStale(_) => target.retry_stale = 0,
            Self::ShutdownTimeout(_) => {
                let limits = target.limits.unwrap_or_default();
                target.limits = Some(Limits {
                    shutdown_ms: Limits::default().shutdown_ms,
                    ..limits
                });
            }
            Self::Args(args) => {
                let kept = target.args.len().saturating_sub(args.len());
                if target.args.get(kept..) == Some(args.as_slice()) {
                    target.args.truncate(kept);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn target() -> Target {
        let argv = ["/bin/x".to_owned(), "--stdio".to_owned()];
        Target::of_command("x", &argv, BTreeMap::new())
    }

    #[test]
    fn what_is_given_can_be_named_read_back_and_taken() {
        let all = [
            (
                Setting::InitializationOptions(json!({"a": 1})),
                "initializationOptions: {\"a\":1}",
            ),
            (Setting::Configuration(json!({})), "configuration: {}"),
            (
                Setting::AnnounceConfiguration,
                "announceConfiguration: true",
            ),
            (Setting::RisingVersions, "versions: rising"),
            (Setting::RetryStale(3), "retryStale: 3"),
            (Setting::ShutdownTimeout(20_000), "shutdownTimeoutMs: 20000"),
        ];
        let bare = target();
        assert_eq!(Setting::of(&bare), []);
        for (setting, name) in &all {
            assert_eq!(setting.name(), *name);
            let mut given = bare.clone();
            setting.give(&mut given);
            assert_eq!(Setting::of(&given), std::slice::from_ref(setting));
            assert_ne!(given.row(), bare.row());
            setting.take(&mut given);
            assert_eq!(given.row(), bare.row());
        }
        let mut given = bare.clone();
        for (setting, _) in &all {
            setting.give(&mut given);
        }
        let named: Vec<String> = Setting::of(&given).iter().map(Setting::name).collect();
        let wanted: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
        assert_eq!(named, wanted);
    }

    #[test]
    fn arguments_go_behind_the_others_and_come_off_again() {
        let mut given = target();
        let args = Setting::Args(vec!["--index".to_owned()]);
        args.give(&mut given);
        assert_eq!(given.args, ["--stdio", "--index"]);
        assert_eq!(args.name(), "args: [\"--index\"]");
        args.take(&mut given);
        assert_eq!(given.args, ["--stdio"]);
        args.take(&mut given);
        assert_eq!(given.args, ["--stdio"]);
    }

    #[test]
    fn an_entry_suggests_what_it_lists() {
        let remedy = EntryRemedy {
            against: "silence".to_owned(),
            configuration: json!({}),
            announce_configuration: true,
            args: vec!["-v".to_owned()],
            ..EntryRemedy::default()
        };
        let suggested = Suggested::of_entry(&remedy);
        assert_eq!(
            suggested.settings,
            [
                Setting::Args(vec!["-v".to_owned()]),
                Setting::Configuration(json!({})),
                Setting::AnnounceConfiguration,
            ]
        );
    }
}
