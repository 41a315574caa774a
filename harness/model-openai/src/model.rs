//! The model itself.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use dsh_agent::{Delta, Model, ModelError, model_code as loop_code};
use dsh_kernel::Cancel;
use dsh_session::{AssistantMessage, ModelRequest};

use crate::config::{ConfigError, Endpoint, OpenAiConfig};
use crate::connect::{Tls, connect};
use crate::exchange::exchange;
use crate::failure::code;
use crate::mask::{Mask, masked};
use crate::request::body;

/// A model behind an OpenAI-compatible chat completions server.
///
/// Each request has a connection of its own, which ends with the request: when it is cancelled or
/// dropped, the server sees the connection close and can stop working.
pub struct OpenAiModel {
    endpoint: Endpoint,
    tls: Tls,
    serial: AtomicU64,
}

impl OpenAiModel {
    /// The model, its configuration checked. `variable` looks an environment variable up: the key's,
    /// and the proxies' if they are wanted; no other is asked for.
    pub fn new(
        config: OpenAiConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(config, variable)?,
            tls: Tls::default(),
            serial: AtomicU64::new(0),
        })
    }

    #[cfg(test)]
    pub(crate) fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    #[cfg(test)]
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<AssistantMessage, ModelError> {
        let body = body(request, &self.endpoint.config);
        let most = self.endpoint.connect_timeout();
        let connecting = connect(&self.endpoint, &self.tls);
        let stream = tokio::time::timeout(most, connecting).await.map_err(|_| {
            ModelError::transient(
                code::MODEL_UNREACHABLE,
                format!(
                    "no connection to {} within {} ms; check the network, or raise connectTimeoutMs",
                    self.endpoint.host(),
                    most.as_millis()
                ),
                None,
            )
        })??;
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        exchange(stream, &self.endpoint, body, serial, tell).await
    }
}

#[async_trait]
impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.endpoint.config.model
    }

    async fn respond(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn FnMut(Delta) + Send),
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelError> {
        let key = self.endpoint.key.as_ref().map(|key| &key.secret);
        let secret = key.filter(|secret| secret.is_worth_hiding());
        let work = async {
            let Some(secret) = secret else {
                return self.ask(request, deltas).await;
            };
            let mut mask = Mask::new(secret);
            let mut tell = |delta| {
                if let Some(delta) = mask.piece(delta) {
                    deltas(delta);
                }
            };
            let outcome = self.ask(request, &mut tell).await;
            mask.rest().for_each(deltas);
            outcome.map(|message| masked(secret, message))
        };
        tokio::select! {
            biased;
            reason = cancel.cancelled() => Err(ModelError::fatal(
                loop_code::MODEL_CANCELLED,
                format!("the request was given up: {reason}"),
            )),
            outcome = work => outcome,
        }
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
