//! Naming the model that answers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use dsh_harness::agent::{Model, ScriptError, ScriptedModel};
use dsh_model_openai::{OpenAiConfig, OpenAiModel};
use dsh_profiles::Models;

use crate::shell::Shell;

/// Where a model is asked unless a place is named.
const BASE_URL: &str = "https://api.deepseek.com";

/// Where the key of its server is looked for unless another variable is named.
const KEY: &str = "DSH_API_KEY";

/// A model as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModelName {
    /// `scripted:FILE`
    Scripted(PathBuf),
    /// `openai:MODEL[@BASE_URL]`
    OpenAi { model: String, base_url: String },
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "write scripted:FILE or openai:MODEL[@BASE_URL]";
        match text.split_once(':') {
            Some(("scripted", "")) => Err(format!("scripted: names no file; {FORMS}")),
            Some(("scripted", file)) => Ok(Self::Scripted(file.into())),
            Some(("openai", rest)) => {
                // A model's name may hold an @ of its own; a URL begins with its scheme.
                let at = rest.rfind("@http://").or_else(|| rest.rfind("@https://"));
                let (model, base_url) = match at {
                    Some(at) => (&rest[..at], &rest[at + 1..]),
                    None => (rest, BASE_URL),
                };
                if model.trim().is_empty() {
                    return Err(format!("openai: names no model; {FORMS}"));
                }
                Ok(Self::OpenAi {
                    model: model.to_owned(),
                    base_url: base_url.to_owned(),
                })
            }
            _ => {
                let shown: String = text.chars().take(80).collect();
                Err(format!("{shown:?} is no model; {FORMS}"))
            }
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scripted(file) => write!(f, "scripted:{}", file.display()),
            Self::OpenAi { model, .. } => f.write_str(model),
        }
    }
}

/// The model that was chosen, for every session.
pub(super) struct Chosen {
    name: String,
    kind: Kind,
}

enum Kind {
    /// Every session plays the script from its beginning.
    Scripted {
        file: PathBuf,
        given: Mutex<Vec<Arc<ScriptedModel>>>,
    },
    Shared(Arc<dyn Model>),
}

/// The model of that name; an error says in words why there is none.
pub(super) fn chosen(
    shell: &Shell,
    name: &ModelName,
    key_from: Option<&str>,
) -> Result<Chosen, String> {
    let kind = match name {
        ModelName::Scripted(file) => {
            let file = shell.absolute(file);
            // A script that is none is told before anything is mounted.
            scripted(&file)?;
            Kind::Scripted {
                file,
                given: Mutex::default(),
            }
        }
        ModelName::OpenAi { model, base_url } => {
            Kind::Shared(over_http(shell, model, base_url, key_from)?)
        }
    };
    Ok(Chosen {
        name: name.to_string(),
        kind,
    })
}

fn scripted(file: &Path) -> Result<ScriptedModel, String> {
    ScriptedModel::from_file(file).map_err(|error| error.to_string())
}

impl Chosen {
    /// Whether every script was followed to its end.
    pub(super) fn finish(&self) -> Result<(), ScriptError> {
        match &self.kind {
            Kind::Shared(_) => Ok(()),
            Kind::Scripted { given, .. } => {
                let given = given.lock().unwrap_or_else(PoisonError::into_inner);
                given.iter().try_for_each(|model| model.finish())
            }
        }
    }
}

impl Models for Chosen {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Result<Arc<dyn Model>, String> {
        match &self.kind {
            Kind::Shared(model) => Ok(Arc::clone(model)),
            Kind::Scripted { file, given } => {
                let model = Arc::new(scripted(file)?);
                given
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Arc::clone(&model));
                Ok(model)
            }
        }
    }
}

/// The variable that the key is taken from: the one that was named, or the usual one.
fn variable_of_key<'a>(shell: &Shell, key_from: Option<&'a str>) -> Option<&'a str> {
    key_from.or_else(|| shell.variable(KEY).map(|_| KEY))
}

/// The key of the model, where it has one.
pub(super) fn key<'a>(
    shell: &'a Shell,
    model: &ModelName,
    key_from: Option<&str>,
) -> Option<&'a str> {
    match model {
        ModelName::OpenAi { .. } => shell.variable(variable_of_key(shell, key_from)?),
        ModelName::Scripted(_) => None,
    }
}

fn over_http(
    shell: &Shell,
    model: &str,
    base_url: &str,
    key_from: Option<&str>,
) -> Result<Arc<dyn Model>, String> {
    let mut config = OpenAiConfig::new(base_url, model);
    config.proxy_from_environment = true;
    if let Some(variable) = variable_of_key(shell, key_from) {
        config = config.with_key_from(variable);
    }
    let model = OpenAiModel::new(config, |name| shell.variable(name).map(str::to_owned));
    match model {
        Ok(model) => Ok(Arc::new(model)),
        Err(error) => {
            // The keys of the configuration, as they are typed here.
            let told = error.to_string().replace("apiKeyEnv", "--key-from");
            Err(format!("--model openai: {told}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_a_script_or_a_name_and_a_place() {
        let openai = |model: &str, base_url: &str| ModelName::OpenAi {
            model: model.to_owned(),
            base_url: base_url.to_owned(),
        };
        for (text, model) in [
            ("scripted:a/b.yaml", ModelName::Scripted("a/b.yaml".into())),
            ("openai:m", openai("m", BASE_URL)),
            ("openai:m@1", openai("m@1", BASE_URL)),
            ("openai:m@http://x/v1", openai("m", "http://x/v1")),
            ("openai:m@1@https://x", openai("m@1", "https://x")),
        ] {
            assert_eq!(text.parse(), Ok(model));
        }
        for text in ["", "m", "scripted:", "openai:", "openai:@http://x", "gpt:m"] {
            let error = text.parse::<ModelName>().unwrap_err();
            assert!(error.contains("scripted:FILE"), "{error}");
        }
    }
}
