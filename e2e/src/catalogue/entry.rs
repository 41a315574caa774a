//! One entry of the catalogue, as its file says it.

use std::collections::BTreeMap;

use dsh_reports::Surprise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::{self, DataError};

/// Stands for the folder of the installation in an entry's arguments and settings.
pub(crate) const INSTALL: &str = "${install}";

/// One language server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The name typed after `--server`; also the name of the file.
    pub name: String,
    /// The language it serves, as people write it.
    pub language: String,
    /// One sentence on what it is.
    pub summary: String,
    /// How it is started.
    pub launch: Launch,
    /// How its version is asked.
    pub version: VersionProbe,
    /// File extension with its dot → LSP language id.
    pub extensions: BTreeMap<String, String>,
    /// `initializationOptions` it is given; null when it needs none. `${install}` in a text stands
    /// for the folder of the installation.
    #[serde(default)]
    pub initialization_options: Value,
    /// The answer to every `workspace/configuration` item; null when it needs none. `${install}` in
    /// a text stands for the folder of the installation.
    #[serde(default)]
    pub configuration: Value,
    /// Whether the host announces the configuration right behind `initialized`, for a server that
    /// stays silent until then (`announceConfiguration`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub announce_configuration: bool,
    /// The version that an opened document is given, `rising` for a server that caches by version
    /// (`versions`).
    #[serde(default, skip_serializing_if = "Versions::is_fixed")]
    pub versions: Versions,
    /// How often the host asks again when the answer is stale, 0 to 100 (`retryStale`).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 100))]
    pub retry_stale: u32,
    /// `shutdownTimeoutMs` of the host, in milliseconds, 1 to 60000, for a server that needs longer
    /// to end than the host's default allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub shutdown_timeout_ms: Option<u64>,
    /// How much memory its process tree needs for a check, in MiB, 1 to 1048576: so much is kept
    /// free for it where servers are checked side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub memory_mb: Option<u64>,
    /// The sample workspace it is asked about. Only entries of a user may have none: then nothing
    /// is known to ask about, and the protocol alone is judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample: String,
    /// Ways to obtain it, in the order they are tried.
    pub recipes: Vec<Recipe>,
    /// What it is known to do that surprises a client.
    #[serde(default)]
    pub surprises: Vec<Surprise>,
    /// Settings that are tried, in this order, where a MUST fails without them; what is given with
    /// every start stands in the keys above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<EntryRemedy>,
}

/// Settings that help against something, given together. `${install}` stands in them for the folder
/// of the installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryRemedy {
    /// What it helps against.
    pub against: String,
    /// `initializationOptions`, in place of what is given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub initialization_options: Value,
    /// `configuration`, in place of what is given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub configuration: Value,
    /// `announceConfiguration`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub announce_configuration: bool,
    /// `versions`.
    #[serde(default, skip_serializing_if = "Versions::is_fixed")]
    pub versions: Versions,
    /// `retryStale`, 0 to 100.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 100))]
    pub retry_stale: u32,
    /// `shutdownTimeoutMs`, 1 to 60000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub shutdown_timeout_ms: Option<u64>,
    /// Arguments, behind those it is started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// Which version an opened document is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Versions {
    /// Always 1.
    #[default]
    Fixed,
    /// One more at each open of the same document in the same process.
    Rising,
}

impl Versions {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature serde asks for"
    )]
    fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Launch {
    /// The program, a bare name.
    pub command: String,
    /// Its arguments, given as they are, but for `${install}`: the folder of the installation. For
    /// a program on PATH that is the folder whose `node_modules` it is in.
    #[serde(default)]
    pub args: Vec<String>,
}

/// How the version of a server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionProbe {
    /// The program that knows the version where it is not the server itself: a bare name, found in
    /// the server's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The text the version stands behind; without it the first word that starts with a digit
    /// counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The npm package of the server, for one that has no option that tells its version: then
    /// nothing is started, and the version is the one in the package's manifest. Stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Whether a server that does not tell it counts all the same, its version being `unknown`.
    /// With nothing else here, nothing is started to ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A platform a recipe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Platform {
    /// Linux.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform this binary was built for; other Unix systems count as Linux.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Macos
        } else {
            Self::Linux
        }
    }
}

/// One way to obtain a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Recipe {
    /// A program that is on PATH already.
    Path(PathRecipe),
    /// Packages of npm, into the cache.
    Npm(NpmRecipe),
    /// Packages of `PyPI`, into a virtual environment in the cache.
    Pypi(PypiRecipe),
    /// A component of the user's Rust toolchain.
    RustupComponent(RustupRecipe),
    /// A package of the system; printed, and run only when asked.
    SystemPackage(SystemRecipe),
    /// A package built by cargo, into the cache.
    Cargo(CargoRecipe),
}

/// The kinds of [`Recipe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecipeKind {
    /// A program on PATH.
    Path,
    /// npm.
    Npm,
    /// `PyPI`.
    Pypi,
    /// A component of rustup.
    RustupComponent,
    /// The system's package manager.
    SystemPackage,
    /// cargo.
    Cargo,
}

/// A program that is on PATH already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
}

/// Packages of npm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NpmRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// The package whose version names the installation.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Packages it needs beside it, with exact versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, String>,
    /// The oldest major version of Node.js it works on.
    pub node: u32,
    /// Packages that packages ask for and that are replaced by this exact version of them, where
    /// what is asked for cannot be had: npm's `overrides`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,
    /// Whether the packages' own install scripts have to run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripts: bool,
}

/// Packages of `PyPI`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PypiRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// The package whose version names the installation.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Packages it needs beside it, with exact versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, String>,
    /// The oldest major version of Java that it needs on PATH, where it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
}

/// A component of the user's Rust toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RustupRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// The name of the component.
    pub component: String,
}

/// Packages of the system's own package manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SystemRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// Packages for apt-get, on Debian and its descendants.
    pub apt: Vec<String>,
}

/// A package built by cargo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CargoRecipe {
    /// The platforms this holds for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// The package.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Features to turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Variables the build is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// About how long the build takes on two cores, in minutes; a long build is announced.
    pub minutes: u32,
    /// Whether the build is too long to be started unasked on a machine of a CI.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub long: bool,
}

impl Entry {
    /// Reads one file. `origin` is its name, which has to be `NAME.yaml`.
    pub fn parse(origin: &str, text: &str) -> Result<Self, DataError> {
        let entry: Self = data::parse(origin, text)?;
        match entry.fault_of_file(origin).or_else(|| entry.fault()) {
            Some(fault) => Err(DataError::whole(origin, fault.message)),
            None => Ok(entry),
        }
    }

    /// The recipes that hold on `platform`, in the order they are tried.
    pub fn recipes_on(&self, platform: Platform) -> impl Iterator<Item = &Recipe> {
        self.recipes
            .iter()
            .filter(move |recipe| recipe.holds_on(platform))
    }

    /// Whether it is given the folder of the installation.
    pub(crate) fn names_install(&self) -> bool {
        let settings = |args: &[String], values: [&Value; 2]| {
            args.iter().any(|arg| arg.contains(INSTALL)) || values.into_iter().any(names_install)
        };
        let given = [&self.initialization_options, &self.configuration];
        settings(&self.launch.args, given)
            || self.remedies.iter().any(|remedy| {
                let tried = [&remedy.initialization_options, &remedy.configuration];
                settings(&remedy.args, tried)
            })
    }

    /// What is wrong with an entry that is part of the program, beside [`Self::fault`].
    fn fault_of_file(&self, origin: &str) -> Option<Fault> {
        let file = origin.rsplit('/').next().unwrap_or(origin);
        if file.strip_suffix(".yaml") != Some(self.name.as_str()) {
            return Some(Fault {
                path: vec!["name".to_owned()],
                message: format!("name is \"{}\", so the file is {0}.yaml", self.name),
            });
        }
        let (launch, version) = (&self.launch.command, self.version.command.as_ref());
        for (path, command) in [
            (["launch", "command"], Some(launch)),
            (["version", "command"], version),
        ] {
            if command.is_some_and(|name| name.contains(['/', '\\'])) {
                return Fault::at(&path, "give the bare name of the program");
            }
        }
        if self.version.is_empty() {
            return Fault::at(&["version"], "give the args it tells it by, or a package");
        }
        if self.sample.is_empty() {
            return Fault::at(&["sample"], "name the sample workspace it is asked about");
        }
        None
    }

    /// What is wrong with the values of an entry.
    pub(super) fn fault(&self) -> Option<Fault> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(legal) {
            return Fault::at(&["name"], "use lowercase letters, digits and \"-\"");
        }
        if self.name.starts_with('-') {
            let said = "begin with a letter or a digit: with \"-\" it is taken for an option";
            return Fault::at(&["name"], said);
        }
        let (launch, version) = (&self.launch.command, self.version.command.as_ref());
        for (path, command) in [
            (["launch", "command"], Some(launch)),
            (["version", "command"], version),
        ] {
            if command.is_some_and(|name| name.trim().is_empty()) {
                return Fault::at(&path, "give the bare name of the program");
            }
            if command.is_some_and(|name| name.starts_with('-')) {
                return Fault::at(&path, "give a program: this is an option");
            }
        }
        if let Some(fault) = self.version.fault() {
            return Some(fault);
        }
        if self.extensions.is_empty() {
            return Fault::at(&["extensions"], "name at least one");
        }
        for (extension, language) in &self.extensions {
            let name = extension.strip_prefix('.').unwrap_or_default();
            let legal = |c: char| !c.is_uppercase() && !matches!(c, '.' | '/' | '\\');
            let said = if name.is_empty() || !name.chars().all(legal) {
                format!("\"{extension}\" is no extension: \".\" and lowercase letters")
            } else if language.trim().is_empty() {
                format!("{extension} has no language id")
            } else {
                continue;
            };
            return Fault::of_key("extensions", extension, said);
        }
        let limits = limits_fault(self.shutdown_timeout_ms, self.retry_stale);
        if let Some((key, said)) = limits {
            return Fault::at(&[key], said);
        }
        if out_of(1..=1_048_576, self.memory_mb) {
            return Fault::at(&["memoryMb"], "give 1 to 1048576 MiB");
        }
        for (index, remedy) in self.remedies.iter().enumerate() {
            let bare = EntryRemedy {
                against: remedy.against.clone(),
                ..EntryRemedy::default()
            };
            let (key, said) = if remedy.against.trim().is_empty() {
                ("against", "say what it helps against".to_owned())
            } else if *remedy == bare {
                let against = &remedy.against;
                let said = format!("\"{against}\" has no setting; give one or more");
                ("against", said)
            } else if let Some((key, said)) =
                limits_fault(remedy.shutdown_timeout_ms, remedy.retry_stale)
            {
                (key, format!("{key}: {said}"))
            } else {
                continue;
            };
            let path = ["remedies", &index.to_string(), key];
            return Some(Fault {
                path: path.iter().map(|&part| part.to_owned()).collect(),
                message: format!("remedies: {said}"),
            });
        }
        if self.recipes.is_empty() {
            return Fault::at(&["recipes"], "name at least one way to obtain the server");
        }
        let mut recipes = self.recipes.iter().enumerate();
        recipes.find_map(|(index, recipe)| recipe.fault(index))
    }
}

/// Whether `value` names files of the installation.
fn names_install(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(INSTALL),
        Value::Array(items) => items.iter().any(names_install),
        Value::Object(members) => members.values().any(names_install),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl VersionProbe {
    fn fault(&self) -> Option<Fault> {
        if self.is_empty() && !self.optional {
            let said = "give the args it tells it by, a package, or optional: true for a server \
                        that does not tell it";
            return Fault::at(&["version"], said);
        }
        let package = self.package.as_ref()?;
        let alone = self.command.is_none() && self.args.is_empty() && self.after.is_none();
        let path = ["version", "package"];
        if !alone {
            return Fault::at(&path, "it stands alone, since nothing is started");
        }
        if package.is_empty() {
            return Fault::at(&path, "name it");
        }
        None
    }

    /// Whether it says neither what to run nor what to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.command.is_none() && self.args.is_empty() && self.package.is_none()
    }
}

fn out_of(range: std::ops::RangeInclusive<u64>, value: Option<u64>) -> bool {
    value.is_some_and(|value| !range.contains(&value))
}

/// What is wrong with an entry, and where in it.
#[derive(Debug)]
pub(super) struct Fault {
    /// Keys and indices that lead there.
    pub(super) path: Vec<String>,
    /// What is wrong, and what to write.
    pub(super) message: String,
}

impl Fault {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "a fault is returned where one is found"
    )]
    fn at(path: &[&str], said: &str) -> Option<Self> {
        Some(Self {
            message: format!("{}: {said}", path.join(".")),
            path: path.iter().map(|&part| part.to_owned()).collect(),
        })
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "a fault is returned where one is found"
    )]
    fn of_key(key: &str, below: &str, said: impl std::fmt::Display) -> Option<Self> {
        Some(Self {
            path: vec![key.to_owned(), below.to_owned()],
            message: format!("{key}: {said}"),
        })
    }
}

/// The key that is out of its range, and what to give.
fn limits_fault(
    shutdown_timeout_ms: Option<u64>,
    retry_stale: u32,
) -> Option<(&'static str, &'static str)> {
    if out_of(1..=60_000, shutdown_timeout_ms) {
        return Some(("shutdownTimeoutMs", "give 1 to 60000 milliseconds"));
    }
    (retry_stale > 100).then_some(("retryStale", "give 0 to 100"))
}

impl Recipe {
    /// The kind.
    pub const fn kind(&self) -> RecipeKind {
        match self {
            Self::Path(_) => RecipeKind::Path,
            Self::Npm(_) => RecipeKind::Npm,
            Self::Pypi(_) => RecipeKind::Pypi,
            Self::RustupComponent(_) => RecipeKind::RustupComponent,
            Self::SystemPackage(_) => RecipeKind::SystemPackage,
            Self::Cargo(_) => RecipeKind::Cargo,
        }
    }

    /// The version it installs; `None` where something else decides that.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Npm(recipe) => Some(&recipe.version),
            Self::Pypi(recipe) => Some(&recipe.version),
            Self::Cargo(recipe) => Some(&recipe.version),
            Self::Path(_) | Self::RustupComponent(_) | Self::SystemPackage(_) => None,
        }
    }

    /// Whether it is for `platform`.
    pub fn holds_on(&self, platform: Platform) -> bool {
        let platforms = match self {
            Self::Path(recipe) => &recipe.platforms,
            Self::Npm(recipe) => &recipe.platforms,
            Self::Pypi(recipe) => &recipe.platforms,
            Self::RustupComponent(recipe) => &recipe.platforms,
            Self::SystemPackage(recipe) => &recipe.platforms,
            Self::Cargo(recipe) => &recipe.platforms,
        };
        platforms.is_empty() || platforms.contains(&platform)
    }

    /// The packages it installs, each with its exact version.
    pub fn pins(&self) -> Vec<(&str, &str)> {
        let (package, version, with) = match self {
            Self::Npm(recipe) => (&recipe.package, &recipe.version, Some(&recipe.with)),
            Self::Pypi(recipe) => (&recipe.package, &recipe.version, Some(&recipe.with)),
            Self::Cargo(recipe) => (&recipe.package, &recipe.version, None),
            Self::Path(_) | Self::RustupComponent(_) | Self::SystemPackage(_) => return Vec::new(),
        };
        let with = with
            .into_iter()
            .flatten()
            .map(|(name, pin)| (name.as_str(), pin.as_str()));
        std::iter::once((package.as_str(), version.as_str()))
            .chain(with)
            .collect()
    }

    fn fault(&self, index: usize) -> Option<Fault> {
        let inexact = |version: &str| {
            !version.starts_with(|c: char| c.is_ascii_digit())
                || !version
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
        };
        let overrides = match self {
            Self::Npm(recipe) => Some(&recipe.overrides),
            _ => None,
        };
        // The first is the recipe's own.
        let pins = self.pins().into_iter().enumerate();
        let pins = pins.map(|(place, pin)| (if place == 0 { "version" } else { "with" }, pin));
        let overrides = overrides.into_iter().flatten();
        let overrides =
            overrides.map(|(package, version)| ("overrides", (package.as_str(), version.as_str())));
        let (key, (package, version)) = pins
            .chain(overrides)
            .find(|(_, (_, version))| inexact(version))?;
        let below = (key != "version").then(|| package.to_owned());
        let key = std::iter::once(key.to_owned()).chain(below);
        let recipe = ["recipes".to_owned(), index.to_string()];
        Some(Fault {
            path: recipe.into_iter().chain(key).collect(),
            message: format!(
                "recipes: pin {package} to one exact version, not \"{version}\"; \
                 1.2.3 for instance"
            ),
        })
    }
}

impl RecipeKind {
    /// The name in the data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::RustupComponent => "rustup-component",
            Self::SystemPackage => "system-package",
            Self::Cargo => "cargo",
        }
    }
}
