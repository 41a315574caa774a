//! Scripted providers: they answer by themselves, without any server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::lsp::{Hover, LspError, LspProvider, ProviderQuery, QueryResult, Registration};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::arranged::lock;

/// `register`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Register {
    pub(super) id: String,
    pub(super) extensions: Vec<(String, String)>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    hold: bool,
}

/// One query that a stub got, and what became of it.
#[derive(Clone, Debug, Serialize)]
struct Asked {
    query: ProviderQuery,
    /// `waiting`, `answered`, `cancelled` or `dropped`.
    end: &'static str,
    /// `caller`, `timeout` or `disposed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// A provider of the seam that does what it was told.
pub(super) struct Stub {
    id: String,
    extensions: BTreeMap<String, String>,
    result: Option<QueryResult>,
    holds: watch::Sender<bool>,
    asked: watch::Sender<Vec<Asked>>,
}

impl Stub {
    /// A stub, or why there can be none of this kind.
    pub(super) fn new(told: Register) -> Result<Self, String> {
        let mut extensions = BTreeMap::new();
        for (extension, language) in told.extensions {
            if extensions.insert(extension.clone(), language).is_some() {
                return Err(format!(
                    "this harness takes extensions as a map, in which {extension:?} cannot stand twice; spell it differently, `TS` and `.ts` for instance"
                ));
            }
        }
        let result = told
            .result
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| format!("`result` is no result of the seam: {error}"))?;
        Ok(Self {
            id: told.id,
            extensions,
            result,
            holds: watch::Sender::new(told.hold),
            asked: watch::Sender::default(),
        })
    }

    /// Lets every query go on, those to come included.
    pub(super) fn release(&self) {
        self.holds.send_replace(false);
    }

    /// Waits until so many queries came, and so many of them were given up.
    pub(super) async fn asked(&self, times: usize, ended: usize) {
        let mut asked = self.asked.subscribe();
        let over = |asked: &[Asked]| asked.iter().filter(|one| one.end != "waiting").count();
        // The sender is `self`, so this cannot fail.
        let _ = asked
            .wait_for(|asked| asked.len() >= times && over(asked) >= ended)
            .await;
    }

    /// What it was asked so far.
    pub(super) fn log(&self) -> Value {
        json!({"queries": *self.asked.borrow()})
    }

    fn answer(&self, query: &ProviderQuery) -> QueryResult {
        self.result.clone().unwrap_or_else(|| QueryResult::Hover {
            hover: Some(Hover {
                contents: serde_json::to_string(query).unwrap_or_else(|error| error.to_string()),
                range: None,
            }),
        })
    }
}

#[async_trait]
impl LspProvider for Stub {
    fn id(&self) -> &str {
        &self.id
    }

    fn extension_to_language(&self) -> &BTreeMap<String, String> {
        &self.extensions
    }

    async fn query(&self, query: ProviderQuery, cancel: &Cancel) -> Result<QueryResult, LspError> {
        let mut noted = Noted::new(&self.asked, query.clone());
        let mut holds = self.holds.subscribe();
        let reason = tokio::select! {
            biased;
            reason = cancel.cancelled() => reason,
            _ = holds.wait_for(|holds| !holds) => {
                noted.end("answered", None);
                return Ok(self.answer(&query));
            }
        };
        noted.end("cancelled", Some(reason));
        Err(reason.into())
    }
}

/// Writes down how a query ended, also when it was just dropped.
struct Noted<'a> {
    log: &'a watch::Sender<Vec<Asked>>,
    at: usize,
    over: bool,
}

impl<'a> Noted<'a> {
    fn new(log: &'a watch::Sender<Vec<Asked>>, query: ProviderQuery) -> Self {
        let mut at = 0;
        log.send_modify(|asked| {
            at = asked.len();
            asked.push(Asked {
                query,
                end: "waiting",
                reason: None,
            });
        });
        Self {
            log,
            at,
            over: false,
        }
    }

    fn end(&mut self, end: &'static str, reason: Option<CancelReason>) {
        self.over = true;
        let at = self.at;
        self.log.send_modify(|asked| {
            if let Some(one) = asked.get_mut(at) {
                one.end = end;
                one.reason = reason.map(named);
            }
        });
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.end("dropped", None);
        }
    }
}

const fn named(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Caller => "caller",
        CancelReason::Timeout(_) => "timeout",
        _ => "disposed",
    }
}

/// The stubs of one mount, by id; of one id, all that were registered, the latest last.
#[derive(Default)]
pub(super) struct Stubs(Mutex<BTreeMap<String, Vec<Registered>>>);

type Registered = (Arc<Stub>, Registration);

impl Stubs {
    pub(super) fn add(&self, stub: Arc<Stub>, registration: Registration) {
        let mut stubs = lock(&self.0);
        let id = stub.id.clone();
        stubs.entry(id).or_default().push((stub, registration));
    }

    /// The stub registered last under an id.
    pub(super) fn latest(&self, id: &str) -> Option<Arc<Stub>> {
        let stubs = lock(&self.0);
        Some(Arc::clone(&stubs.get(id)?.last()?.0))
    }

    /// Releases the registration of an id: the latest, or the `nth` from 1. Whether there is one.
    pub(super) fn unregister(&self, id: &str, nth: Option<usize>) -> bool {
        let stubs = lock(&self.0);
        let Some(of_id) = stubs.get(id) else {
            return false;
        };
        let found = match nth {
            None => of_id.last(),
            Some(nth) => nth.checked_sub(1).and_then(|at| of_id.get(at)),
        };
        match found {
            Some((_, registration)) => {
                registration.release();
                true
            }
            None => false,
        }
    }

    /// Releases all of them.
    pub(super) fn clear(&self) {
        let taken = std::mem::take(&mut *lock(&self.0));
        drop(taken);
    }
}
