//! Models that speak OpenAI-compatible chat completions over HTTP.
//!
//! [`OpenAiModel`] sends a [`ModelRequest`](dsh_session::ModelRequest) and puts the streamed answer
//! together: text, reasoning, calls from their fragments, usage. It works with any server that has
//! `/chat/completions`; how the path is made from `baseUrl` is told at [`OpenAiConfig::base_url`].
//!
//! - The key comes from the environment variable that the configuration names. A [`Secret`] cannot be
//!   printed, the header that carries it is marked sensitive, and what servers say is cleaned of it;
//!   so is what the model says, its calls included, where the key has at least 12 bytes.
//!   Redirects are not followed, so that it goes to the configured host only.
//! - A request owns its connection; nothing goes on behind it. There is no pool: a new connection
//!   costs little beside the time a model thinks.
//! - What fails is a [`ModelError`](dsh_agent::ModelError) with a code from [`code`] and a hint
//!   whether the same request may be sent again; sending it again is the loop's business.
//! - What a server may send is bounded: the line, the event, the answer, the number of calls, and
//!   the time of its silence.

mod assemble;
mod config;
mod connect;
mod exchange;
mod failure;
mod mask;
mod model;
mod request;
mod secret;
mod sse;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, OpenAiConfig, ReasoningReplay};
pub use failure::code;
pub use model::OpenAiModel;
pub use secret::Secret;
