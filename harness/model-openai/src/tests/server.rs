//! A server that says what it was told to, one connection after the other.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does with a connection, after it has read the request.
#[derive(Clone)]
pub(super) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes, each for itself.
    Drip(Vec<u8>),
    /// Waits until the client closes the connection, and tells it.
    Hold,
}

/// A request as it arrived.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) head: String,
    pub(super) body: Value,
}

#[derive(Debug)]
pub(super) enum Seen {
    Request(Received),
    Closed,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// A server for as many connections as there are lists of acts.
    pub(super) async fn start(connections: Vec<Vec<Act>>) -> Self {
        Self::start_with(connections, None).await
    }

    pub(super) async fn start_with(
        connections: Vec<Vec<Act>>,
        tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (tell, seen) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for acts in connections {
                let Ok((socket, _)) = listener.accept().await else {
                    return;
                };
                socket.set_nodelay(true).expect("it is a socket");
                match &tls {
                    None => act(socket, acts, &tell).await,
                    Some(config) => {
                        let acceptor = TlsAcceptor::from(Arc::clone(config));
                        if let Ok(stream) = acceptor.accept(socket).await {
                            act(stream, acts, &tell).await;
                        }
                    }
                }
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn request(&mut self) -> Received {
        match self.seen.recv().await.expect("the server runs") {
            Seen::Request(received) => received,
            Seen::Closed => panic!("the connection was closed instead"),
        }
    }

    /// Waits until the client has closed a connection that is held.
    pub(super) async fn closed(&mut self) {
        let seen = self.seen.recv().await.expect("the server runs");
        assert!(matches!(seen, Seen::Closed), "{seen:?}");
    }

    /// Whether nothing has arrived.
    pub(super) fn is_untouched(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }
}

/// Reads one request and acts. A client that has gone is the client's right.
pub(super) async fn act(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    acts: Vec<Act>,
    tell: &mpsc::UnboundedSender<Seen>,
) {
    let Some(received) = read_request(&mut stream).await else {
        return;
    };
    let _ = tell.send(Seen::Request(received));
    for act in acts {
        match act {
            Act::Send(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
            }
            Act::Drip(bytes) => {
                for byte in bytes {
                    let _ = stream.write_all(&[byte]).await;
                    let _ = stream.flush().await;
                    tokio::task::yield_now().await;
                }
            }
            Act::Hold => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                let _ = tell.send(Seen::Closed);
            }
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse().expect("a length is a number"))
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(Received {
                    head: head.to_owned(),
                    body: serde_json::from_str(body).unwrap_or_default(),
                });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
