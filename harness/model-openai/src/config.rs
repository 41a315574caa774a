//! What a model over HTTP is configured with, checked before anything is sent.

use std::fmt;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use serde::Deserialize;
use url::Url;

use crate::secret::Secret;

/// The configuration as it is written down. It names the variable of the key and never holds the
/// key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenAiConfig {
    /// Where the server is: `https://api.deepseek.com`, `http://127.0.0.1:8080/v1`. A URL that has no
    /// path gets `/v1/chat/completions`; one that has a path gets `/chat/completions` after it, unless
    /// it ends so already. User names, queries and fragments are refused: a key belongs in the
    /// environment.
    pub base_url: String,
    /// The model's name, as the server knows it.
    pub model: String,
    /// The environment variable that holds the key; none for a server that asks for none. Its name
    /// has KEY, PASSWORD, SECRET or TOKEN in it or begins with `DSH_`, so that no child process
    /// inherits it (ENV-1).
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The most tokens of an answer; none: as the server has it.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The sampling temperature, 0 to 2; none: as the server has it.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Which of the model's reasoning is sent back to it.
    #[serde(default)]
    pub reasoning: ReasoningReplay,
    /// The longest wait for a connection, TLS included, in milliseconds: 1 to 2147483647.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout_ms: u64,
    /// The longest silence of the server, before its first byte and between any two, in
    /// milliseconds: 1 to 2147483647.
    #[serde(default = "default_idle_timeout")]
    pub idle_timeout_ms: u64,
    /// The longest line of a stream, in bytes: 1024 to 1073741824.
    #[serde(default = "default_line_bytes")]
    pub max_line_bytes: usize,
    /// The most bytes of an answer, text, reasoning and calls together: 1024 to 1073741824.
    #[serde(default = "default_response_bytes")]
    pub max_response_bytes: usize,
    /// Whether the proxy variables of the environment count: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`
    /// and `NO_PROXY`, in either letter case.
    #[serde(default)]
    pub proxy_from_environment: bool,
}

/// Which of the model's own reasoning goes back to it with the messages it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReasoningReplay {
    /// That of messages with calls: thinking models of `DeepSeek` refuse to go on without it.
    #[default]
    WithToolCalls,
    /// None.
    Never,
    /// All of it.
    Always,
}

const fn default_connect_timeout() -> u64 {
    15_000
}

const fn default_idle_timeout() -> u64 {
    120_000
}

const fn default_line_bytes() -> usize {
    8 << 20
}

const fn default_response_bytes() -> usize {
    32 << 20
}

/// The longest timer, as for tools.
const MAX_MS: u64 = 2_147_483_647;

impl OpenAiConfig {
    /// The configuration of a server without a key; all else as by default.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key_env: None,
            max_tokens: None,
            temperature: None,
            reasoning: ReasoningReplay::default(),
            connect_timeout_ms: default_connect_timeout(),
            idle_timeout_ms: default_idle_timeout(),
            max_line_bytes: default_line_bytes(),
            max_response_bytes: default_response_bytes(),
            proxy_from_environment: false,
        }
    }

    /// The same with a key, which stands in this variable.
    #[must_use]
    pub fn with_key_from(mut self, variable: impl Into<String>) -> Self {
        self.api_key_env = Some(variable.into());
        self
    }
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is none, or one that cannot be used. What was given is not repeated: it may hold a
    /// key.
    #[error("baseUrl {0}; give one such as https://api.deepseek.com or http://127.0.0.1:8080/v1")]
    BaseUrl(&'static str),
    /// No model was named.
    #[error("model is blank; name one as the server knows it, deepseek-chat for instance")]
    Model,
    /// A number is out of its range.
    #[error("{field} is out of range; give {range}")]
    Range {
        /// The field, as it is written.
        field: &'static str,
        /// What is allowed.
        range: &'static str,
    },
    /// The variable's name does not keep it from child processes.
    #[error(
        "apiKeyEnv names {0:?}, which child processes would inherit; keep the key in a variable with \
         KEY, TOKEN, SECRET or PASSWORD in its name"
    )]
    KeyExposed(String),
    /// The variable is not set, or blank.
    #[error(
        "the environment variable {0} is not set; put the key of the model's server in it, or leave \
         apiKeyEnv out for a server without one"
    )]
    KeyAbsent(String),
    /// The key cannot be sent.
    #[error("the environment variable {0} holds characters that no key has; set it again")]
    KeyInvalid(String),
    /// A proxy variable cannot be understood. What it holds is not repeated: it may be a password.
    #[error(
        "the environment variable {0} names no proxy that can be used; give http://HOST:PORT, or set \
         proxyFromEnvironment to false"
    )]
    Proxy(&'static str),
}

/// What is sent where: a checked configuration.
pub(crate) struct Endpoint {
    pub(crate) config: OpenAiConfig,
    pub(crate) uri: Uri,
    pub(crate) key: Option<Key>,
    pub(crate) proxy: Option<Proxy>,
}

/// The key and the header it is sent in.
pub(crate) struct Key {
    pub(crate) variable: String,
    pub(crate) secret: Secret,
    pub(crate) header: HeaderValue,
}

/// A proxy, and what it wants to know.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) uri: Uri,
    pub(crate) authorization: Option<HeaderValue>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Checks the configuration and reads the key, and the proxy if wanted, through `variable`.
    pub(crate) fn new(
        config: OpenAiConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let uri = endpoint(&config.base_url)?;
        check_ranges(&config)?;
        let key = match &config.api_key_env {
            None => None,
            Some(name) => Some(key(name, &variable)?),
        };
        let proxy = if config.proxy_from_environment {
            proxy(&uri, &variable)?
        } else {
            None
        };
        Ok(Self {
            config,
            uri,
            key,
            proxy,
        })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The host, for messages.
    pub(crate) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    pub(crate) const fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.config.connect_timeout_ms)
    }

    pub(crate) const fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.config.idle_timeout_ms)
    }

    /// `text` of the server's without the key, without control characters, and not too long.
    pub(crate) fn clean(&self, text: &str) -> String {
        const MOST: usize = 500;
        let hidden = match &self.key {
            Some(key) => key.secret.hide_in(text),
            None => text.to_owned(),
        };
        let mut clean: String = hidden
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MOST + 1)
            .collect();
        if let Some((end, _)) = clean.char_indices().nth(MOST) {
            clean.truncate(end);
            clean.push('…');
        }
        clean.trim().to_owned()
    }
}

fn check_ranges(config: &OpenAiConfig) -> Result<(), ConfigError> {
    let range = |fine: bool, field, range| {
        if fine {
            Ok(())
        } else {
            Err(ConfigError::Range { field, range })
        }
    };
    if config.model.trim().is_empty() {
        return Err(ConfigError::Model);
    }
    let ms = 1..=MAX_MS;
    let bytes = 1024..=1 << 30;
    range(
        ms.contains(&config.connect_timeout_ms),
        "connectTimeoutMs",
        "1 to 2147483647",
    )?;
    range(
        ms.contains(&config.idle_timeout_ms),
        "idleTimeoutMs",
        "1 to 2147483647",
    )?;
    range(
        bytes.contains(&config.max_line_bytes),
        "maxLineBytes",
        "1024 to 1073741824",
    )?;
    range(
        bytes.contains(&config.max_response_bytes),
        "maxResponseBytes",
        "1024 to 1073741824",
    )?;
    range(config.max_tokens != Some(0), "maxTokens", "1 or more")?;
    let warm = |temperature: f64| (0.0..=2.0).contains(&temperature);
    range(
        config.temperature.is_none_or(warm),
        "temperature",
        "0 to 2, or leave it out",
    )
}

/// The URL that requests go to.
fn endpoint(base: &str) -> Result<Uri, ConfigError> {
    const PATH: &str = "/chat/completions";
    let mut url = Url::parse(base.trim()).map_err(|_| ConfigError::BaseUrl("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ConfigError::BaseUrl("begins with neither http: nor https:"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::BaseUrl(
            "holds a user name or a password, which belong in no configuration",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ConfigError::BaseUrl("has a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        url.set_path("/v1/chat/completions");
    } else if path.ends_with(PATH) {
        url.set_path(&path);
    } else {
        url.set_path(&format!("{path}{PATH}"));
    }
    url.as_str()
        .parse()
        .map_err(|_| ConfigError::BaseUrl("is too long, or has a host that cannot be sent"))
}

fn key(name: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Key, ConfigError> {
    let upper = name.to_ascii_uppercase();
    let kept = ["KEY", "PASSWORD", "SECRET", "TOKEN"]
        .iter()
        .any(|word| upper.contains(word))
        || name.starts_with("DSH_");
    if !kept {
        return Err(ConfigError::KeyExposed(name.to_owned()));
    }
    let value = variable(name).unwrap_or_default();
    let value = value.trim();
    if value.is_empty() {
        return Err(ConfigError::KeyAbsent(name.to_owned()));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {value}"))
        .map_err(|_| ConfigError::KeyInvalid(name.to_owned()))?;
    header.set_sensitive(true);
    Ok(Key {
        variable: name.to_owned(),
        secret: Secret::new(value),
        header,
    })
}

/// The proxy that the environment has for `target`.
fn proxy(
    target: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, ConfigError> {
    use hyper_util::client::proxy::matcher::Matcher;
    let of = |upper: &'static str, lower: &str| {
        let value = variable(lower).or_else(|| variable(upper));
        (upper, value.unwrap_or_default().trim().to_owned())
    };
    let no = of("NO_PROXY", "no_proxy").1;
    let own = if target.scheme_str() == Some("https") {
        of("HTTPS_PROXY", "https_proxy")
    } else {
        of("HTTP_PROXY", "http_proxy")
    };
    let (name, value) = if own.1.is_empty() {
        of("ALL_PROXY", "all_proxy")
    } else {
        own
    };
    if value.is_empty() {
        return Ok(None);
    }
    let matcher = Matcher::builder().all(value).build();
    let excepted = Matcher::builder().all("http://proxy").no(no).build();
    if excepted.intercept(target).is_none() {
        return Ok(None);
    }
    let found = matcher.intercept(target).ok_or(ConfigError::Proxy(name))?;
    if found.uri().scheme_str() != Some("http") {
        return Err(ConfigError::Proxy(name));
    }
    Ok(Some(Proxy {
        uri: found.uri().clone(),
        authorization: found.basic_auth().cloned().map(|mut header| {
            header.set_sensitive(true);
            header
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut OpenAiConfig);

    #[track_caller]
    fn check_url(base: &str, expected: &str) {
        assert_eq!(
            endpoint(base).map(|uri| uri.to_string()).as_deref(),
            Ok(expected)
        );
    }

    #[test]
    fn the_path_is_completed_by_rule() {
        check_url(
            "https://api.deepseek.com",
            "https://api.deepseek.com/v1/chat/completions",
        );
        check_url(
            "https://api.deepseek.com/",
            "https://api.deepseek.com/v1/chat/completions",
        );
        check_url(
            " http://127.0.0.1:8080/v1 ",
            "http://127.0.0.1:8080/v1/chat/completions",
        );
        check_url(
            "http://[::1]:8080/v1/",
            "http://[::1]:8080/v1/chat/completions",
        );
        check_url(
            "http://h/openai/beta//",
            "http://h/openai/beta/chat/completions",
        );
        check_url(
            "http://h/x/chat/completions/",
            "http://h/x/chat/completions",
        );
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_and_not_repeated() {
        for base in [
            "",
            "localhost:8080",
            "ftp://h",
            "http://",
            "http://user:sk-1234@h",
            "http://h?key=sk-1234",
            "http://h#sk-1234",
        ] {
            let error = endpoint(base).expect_err(base).to_string();
            assert!(error.contains("baseUrl"), "{error}");
            assert!(!error.contains("sk-1234"), "{error}");
        }
    }

    fn with_key(name: &str, value: Option<&str>) -> Result<Endpoint, ConfigError> {
        let config = OpenAiConfig::new("http://h", "m").with_key_from(name);
        Endpoint::new(config, |asked| {
            assert_eq!(asked, name);
            value.map(str::to_owned)
        })
    }

    /// ENV-1: a key is kept where no child finds it.
    #[test]
    fn a_key_stands_in_a_variable_that_children_do_not_get() {
        for name in ["DEEPSEEK_API_KEY", "my_token", "DSH_MODEL"] {
            let endpoint = with_key(name, Some(" sk-1\n")).expect("it is fine");
            let key = endpoint.key.as_ref().expect("it was given");
            assert_eq!(key.header, "Bearer sk-1");
            assert!(!format!("{endpoint:?} {:?}", key.header).contains("sk-1"));
        }
        assert_eq!(
            with_key("MODEL_AUTH", Some("sk-1")).unwrap_err(),
            ConfigError::KeyExposed("MODEL_AUTH".to_owned())
        );
    }

    #[test]
    fn a_key_that_is_absent_or_broken_is_told_by_its_variable() {
        for value in [None, Some(""), Some("  ")] {
            assert_eq!(
                with_key("A_KEY", value).unwrap_err(),
                ConfigError::KeyAbsent("A_KEY".to_owned())
            );
        }
        let error = with_key("A_KEY", Some("sk\u{7}1234")).unwrap_err();
        assert_eq!(error, ConfigError::KeyInvalid("A_KEY".to_owned()));
        assert!(!error.to_string().contains("1234"));
    }

    #[test]
    fn numbers_have_ranges() {
        let change: [(&str, Change); 7] = [
            ("connectTimeoutMs", |c| c.connect_timeout_ms = 0),
            ("idleTimeoutMs", |c| c.idle_timeout_ms = MAX_MS + 1),
            ("maxLineBytes", |c| c.max_line_bytes = 1),
            ("maxResponseBytes", |c| c.max_response_bytes = usize::MAX),
            ("maxTokens", |c| c.max_tokens = Some(0)),
            ("temperature", |c| c.temperature = Some(f64::NAN)),
            ("model", |c| c.model = " ".to_owned()),
        ];
        for (field, change) in change {
            let mut config = OpenAiConfig::new("http://h", "m");
            change(&mut config);
            let error = Endpoint::new(config, |_| None).unwrap_err();
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }

    #[track_caller]
    fn check_proxy(base: &str, variables: &[(&str, &str)], expected: Result<Option<&str>, &str>) {
        let mut config = OpenAiConfig::new(base, "m");
        config.proxy_from_environment = true;
        let look = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let endpoint = Endpoint::new(config, look);
        let found = match &endpoint {
            Ok(endpoint) => Ok(endpoint.proxy.as_ref().map(|proxy| proxy.uri.to_string())),
            Err(error) => {
                assert!(!error.to_string().contains("hunter2"), "{error}");
                Err(error.clone())
            }
        };
        match expected {
            Ok(expected) => assert_eq!(found, Ok(expected.map(str::to_owned))),
            Err(name) => assert!(found.unwrap_err().to_string().contains(name)),
        }
    }

    #[test]
    fn the_environment_s_proxies_count_by_choice() {
        let both = [
            ("HTTPS_PROXY", "http://secure:1"),
            ("http_proxy", "plain:2"),
            ("NO_PROXY", "localhost,.example.com"),
        ];
        check_proxy("https://h", &both, Ok(Some("http://secure:1/")));
        check_proxy("http://h", &both, Ok(Some("http://plain:2/")));
        check_proxy("http://localhost", &both, Ok(None));
        check_proxy("https://a.example.com", &both, Ok(None));
        check_proxy("https://h", &[], Ok(None));
        check_proxy(
            "https://h",
            &[("ALL_PROXY", "http://all:3")],
            Ok(Some("http://all:3/")),
        );
        check_proxy(
            "https://h",
            &[("ALL_PROXY", "socks5://u:hunter2@s:3")],
            Err("ALL_PROXY"),
        );
        check_proxy(
            "https://h",
            &[("HTTPS_PROXY", "http://u:hunter2@[")],
            Err("HTTPS_PROXY"),
        );
        let without = Endpoint::new(OpenAiConfig::new("https://h", "m"), |name| {
            panic!("{name} was read without being asked for")
        });
        assert!(without.expect("it is fine").proxy.is_none());
    }

    #[test]
    fn what_a_server_says_is_cut_and_cleaned() {
        let endpoint = with_key("A_KEY", Some("sk-1234")).expect("it is fine");
        assert_eq!(endpoint.clean("a\n\tsk-1234\u{0}"), "a  [secret]");
        let long = endpoint.clean(&"é".repeat(10_000));
        assert_eq!(long.chars().count(), 501);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_written_configuration_is_read_strictly() {
        let text = r#"{"baseUrl":"http://h","model":"m","apiKeyEnv":"A_KEY","reasoning":"never"}"#;
        let config: OpenAiConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.reasoning, ReasoningReplay::Never);
        assert_eq!(config.idle_timeout_ms, 120_000);
        let error = serde_json::from_str::<OpenAiConfig>(
            r#"{"baseUrl":"http://h","model":"m","apiKey":"sk-1234"}"#,
        )
        .unwrap_err();
        assert!(error.to_string().contains("apiKey"), "{error}");
    }
}
