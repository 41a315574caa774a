//! The connection: names, sockets, proxies, TLS. What fails here is told apart by where it failed.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dsh_agent::ModelError;
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};
use tower_service::Service;

use crate::config::Endpoint;
use crate::failure::code;

/// A connection of any kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How connections are secured: with the roots that the platform trusts, read at the first use.
#[derive(Default)]
pub(crate) struct Tls(OnceCell<Arc<ClientConfig>>);

impl Tls {
    /// With other roots than the platform's.
    #[cfg(test)]
    pub(crate) fn with(config: ClientConfig) -> Self {
        Self(OnceCell::new_with(Some(Arc::new(config))))
    }

    async fn connector(&self) -> Result<TlsConnector, ModelError> {
        let config = self.0.get_or_try_init(|| async {
            // Reading the roots is file work.
            let built = tokio::task::spawn_blocking(platform_config).await;
            let reason = match built {
                Ok(Ok(config)) => return Ok(Arc::new(config)),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            Err(ModelError::fatal(
                code::MODEL_TLS,
                format!(
                    "the platform's trusted certificates cannot be used ({reason}); install them"
                ),
            ))
        });
        Ok(TlsConnector::from(Arc::clone(config.await?)))
    }
}

fn platform_config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth())
}

/// A connection to the endpoint, through its proxy if it has one, secured if it is to be.
pub(crate) async fn connect(endpoint: &Endpoint, tls: &Tls) -> Result<Box<dyn Stream>, ModelError> {
    let mut connector = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let socket = match &endpoint.proxy {
        None => call(&mut connector, endpoint.uri.clone())
            .await
            .map_err(|error| unreachable(&error, endpoint.host(), ""))?,
        Some(proxy) => {
            let through = proxy.uri.host().unwrap_or_default();
            let reached = if endpoint.is_tls() {
                let mut tunnel = Tunnel::new(proxy.uri.clone(), connector);
                if let Some(authorization) = &proxy.authorization {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                call(&mut tunnel, with_port(&endpoint.uri))
                    .await
                    .map_err(Box::from)
            } else {
                let reached = call(&mut connector, proxy.uri.clone()).await;
                reached.map_err(Box::<dyn Error + Send + Sync>::from)
            };
            reached.map_err(|error| unreachable(&*error, through, "the proxy "))?
        }
    };
    let socket = socket.into_inner();
    if !endpoint.is_tls() {
        return Ok(Box::new(socket));
    }
    let host = endpoint.host();
    let failed = |reason: &dyn std::fmt::Display| {
        ModelError::fatal(
            code::MODEL_TLS,
            format!(
                "no secure connection to {host}: {reason}; check that baseUrl begins with the right \
                 scheme and that the server's certificate is trusted here"
            ),
        )
    };
    let name = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name = ServerName::try_from(name).map_err(|error| failed(&error))?;
    let secured = tls.connector().await?.connect(name, socket).await;
    match secured {
        Ok(stream) => Ok(Box::new(stream)),
        // What rustls finds wrong is wrong again; a connection that breaks may hold next time.
        Err(error)
            if error
                .get_ref()
                .is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>) =>
        {
            Err(failed(&error))
        }
        Err(error) => Err(ModelError::transient(
            code::MODEL_UNREACHABLE,
            format!("{host} broke off while the connection was being secured ({error})"),
            None,
        )),
    }
}

/// A tunnel's destination always has a port.
fn with_port(uri: &Uri) -> Uri {
    if uri.port().is_some() {
        return uri.clone();
    }
    let authority = format!("{}:443", uri.host().unwrap_or_default());
    let mut parts = uri.clone().into_parts();
    parts.authority = authority.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

async fn call<S: Service<Uri>>(service: &mut S, uri: Uri) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(uri).await
}

/// The error for a connection that did not come about.
fn unreachable(error: &(dyn Error + 'static), host: &str, what: &str) -> ModelError {
    let mut source = Some(error);
    let mut told = error.to_string();
    while let Some(at) = source {
        if at.is::<DnsError>() {
            return ModelError::transient(
                code::MODEL_DNS,
                format!("{what}{host} cannot be found ({at}); check the name and the network"),
                None,
            );
        }
        if let Some(io) = at.downcast_ref::<io::Error>() {
            told = io.to_string();
        }
        source = at.source();
    }
    ModelError::transient(
        code::MODEL_UNREACHABLE,
        format!(
            "{what}{host} cannot be reached ({told}); check that the server is running and that its \
             host and port are right"
        ),
        None,
    )
}

/// The platform's resolver, whose errors can be told from those of sockets.
#[derive(Clone)]
struct Resolver(GaiResolver);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct DnsError(io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = DnsError;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, DnsError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DnsError>> {
        self.0.poll_ready(cx).map_err(DnsError)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        Box::pin(async move { resolving.await.map_err(DnsError) })
    }
}
