//! The registry behind the service: atomic registration, selection by extension (SEAM-2…12).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_kernel::Cancel;
use tokio_util::sync::CancellationToken;

use crate::{
    LspError, LspProvider, LspService, ProviderQuery, QueryRequest, QueryResult, Registration,
    final_extension, normalize_extensions,
};

/// Who serves which extension. Cloning shares it.
#[derive(Clone, Default)]
pub struct LspRegistry {
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    providers: BTreeMap<String, Arc<Entry>>,
    routes: BTreeMap<String, Route>,
}

/// One live registration.
struct Entry {
    provider: Arc<dyn LspProvider>,
    /// Given when the registration is released: it ends the queries that are running (SEAM-12).
    released: CancellationToken,
}

#[derive(Clone)]
struct Route {
    entry: Arc<Entry>,
    language_id: String,
}

impl LspRegistry {
    /// A registry without providers.
    pub fn new() -> Self {
        Self::default()
    }

    fn select(&self, file_path: &str) -> Result<Route, LspError> {
        let table = lock(&self.table);
        let Some(extension) = final_extension(file_path) else {
            return Err(LspError::Unavailable(format!(
                "no language server can be selected for {file_path:?}, which has no file extension; {}",
                table.served()
            )));
        };
        table.routes.get(&extension).cloned().ok_or_else(|| {
            LspError::Unavailable(format!(
                "no language server serves {extension:?} files ({file_path:?}); {}",
                table.served()
            ))
        })
    }
}

impl Table {
    /// Everything is checked before anything is changed (SEAM-2).
    fn insert(&mut self, provider: Arc<dyn LspProvider>) -> Result<Arc<Entry>, LspError> {
        let id = provider.id().to_owned();
        if id.trim().is_empty() {
            return Err(LspError::InvalidProvider(format!(
                "a provider has the blank id {id:?}; give it a name"
            )));
        }
        let extensions = normalize_extensions(provider.extension_to_language())
            .map_err(|problem| LspError::InvalidProvider(format!("provider {id:?} {problem}")))?;
        self.check_free(&id, extensions.keys())?;

        let entry = Arc::new(Entry {
            provider,
            released: CancellationToken::new(),
        });
        self.providers.insert(id, Arc::clone(&entry));
        self.routes
            .extend(extensions.into_iter().map(|(extension, language_id)| {
                (
                    extension,
                    Route {
                        entry: Arc::clone(&entry),
                        language_id,
                    },
                )
            }));
        Ok(entry)
    }

    fn check_free<'a>(
        &self,
        id: &str,
        mut extensions: impl Iterator<Item = &'a String>,
    ) -> Result<(), LspError> {
        if self.providers.contains_key(id) {
            return Err(LspError::Conflict(format!(
                "a provider with the id {id:?} is registered already; choose another id, or release that one first"
            )));
        }
        let taken = extensions.find_map(|extension| Some((extension, self.routes.get(extension)?)));
        match taken {
            Some((extension, route)) => Err(LspError::Conflict(format!(
                "provider {id:?} wants the extension {extension:?}, which provider {:?} serves; an extension belongs to one provider at a time",
                route.entry.provider.id()
            ))),
            None => Ok(()),
        }
    }

    fn remove(&mut self, entry: &Arc<Entry>) {
        self.providers.retain(|_, other| !Arc::ptr_eq(other, entry));
        self.routes
            .retain(|_, route| !Arc::ptr_eq(&route.entry, entry));
    }

    /// What is served, for the error of a file that is not.
    fn served(&self) -> String {
        if self.routes.is_empty() {
            return "no language server is configured".to_owned();
        }
        let extensions: Vec<&str> = self.routes.keys().map(String::as_str).collect();
        format!("served are {}", extensions.join(", "))
    }
}

#[async_trait]
impl LspService for LspRegistry {
    fn register_provider(&self, provider: Arc<dyn LspProvider>) -> Result<Registration, LspError> {
        let entry = lock(&self.table).insert(provider)?;
        let table = Arc::clone(&self.table);
        Ok(Registration::new(move || {
            lock(&table).remove(&entry);
            entry.released.cancel();
        }))
    }

    async fn query(&self, request: QueryRequest, cancel: &Cancel) -> Result<QueryResult, LspError> {
        cancel.check()?;
        let Route { entry, language_id } = self.select(&request.file_path)?;
        let query = ProviderQuery {
            operation: request.operation,
            file_path: request.file_path,
            position: request.position,
            workspace_root: request.workspace_root,
            language_id,
        };
        let answer = entry.provider.query(query, cancel);
        entry
            .released
            .run_until_cancelled(answer)
            .await
            .unwrap_or_else(|| {
                Err(LspError::Disposed(format!(
                    "provider {:?} was removed while it was answering",
                    entry.provider.id()
                )))
            })
    }
}

/// The lock, also after a panic of another holder: the table is changed only after every check.
fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
