//! The server: takes what the editor wants, holds the sessions, and ends everything when it goes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    PromptResponse, SessionCapabilities, SessionCloseCapabilities,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent as AgentRole, Client, Error, on_receive_notification, on_receive_request,
};
use dsh_harness::agent::Agent;
use dsh_harness::kernel::{Cancel, CancelReason, DisposeErrors};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::conversation::Conversation;
use super::translate;
use super::transport::{Gone, transport};
use crate::Host;
use crate::host::OpenError;
use crate::lines::LONGEST;

/// The most sessions that are open.
const MOST_SESSIONS: usize = 64;

/// Why serving did not end well. Everything is disposed all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The connection broke, or what came on it is not the protocol.
    #[error("the connection to the editor broke: {}", told(.0))]
    Connection(Error),
    /// Something could not be ended in order.
    #[error("not everything ended in order: {0}")]
    Dispose(#[from] DisposeErrors),
    /// A fault of our own.
    #[error("the task of a turn ended with {0}; this is a fault of dsh-conform itself")]
    Fault(#[source] JoinError),
}

fn told(error: &Error) -> String {
    match &error.data {
        Some(data) => format!("{} ({data})", error.message),
        None => error.message.clone(),
    }
}

/// What the editor wants of sessions.
enum Command {
    New(NewSessionRequest, Responder<NewSessionResponse>),
    Load(LoadSessionRequest, Responder<LoadSessionResponse>),
    Prompt(PromptRequest, Responder<PromptResponse>),
    Cancel(CancelNotification),
    Close(CloseSessionRequest, Responder<CloseSessionResponse>),
}

/// Serves one editor until its input ends, its output is closed, or the cancellation is given; then
/// every turn is cancelled, every session closed, and the host disposed.
pub async fn serve(
    host: Arc<Host>,
    input: impl AsyncBufRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    cancel: &Cancel,
) -> Result<(), ServeError> {
    let gone = Gone::default();
    let transport = transport(input, output, LONGEST, Arc::clone(&gone), cancel.clone());
    let mut server = Server {
        host: Arc::clone(&host),
        sessions: HashMap::new(),
        turns: JoinSet::new(),
    };
    let (commands, mut queue) = mpsc::unbounded_channel();
    let wants = |commands: &mpsc::UnboundedSender<Command>| commands.clone();
    let (new, load, prompt, cancelled, close) = (
        wants(&commands),
        wants(&commands),
        wants(&commands),
        wants(&commands),
        commands,
    );
    let capabilities = capabilities(&host);
    let connection = AgentRole
        .v1()
        .name("dsh-conform")
        .on_receive_request(
            async move |_: InitializeRequest, responder: Responder<InitializeResponse>, _editor| {
                responder.respond(initialized(capabilities.clone()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _editor| {
                pass(&new, Command::New(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, _editor| {
                pass(&load, Command::Load(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, _editor| {
                pass(&prompt, Command::Prompt(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _editor| {
                pass(&close, Command::Close(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _editor| {
                pass(&cancelled, Command::Cancel(notification))
            },
            on_receive_notification!(),
        )
        .connect_with(transport, async |editor: ConnectionTo<Client>| {
            server.run(&editor, &mut queue, cancel).await;
            Ok(())
        })
        .await;
    let ended = server.end().await;
    match connection {
        Err(error) if !gone.load(Ordering::Acquire) => {
            ended.and(Err(ServeError::Connection(error)))
        }
        _ => ended,
    }
}

fn pass(commands: &mpsc::UnboundedSender<Command>, command: Command) -> Result<(), Error> {
    commands
        .send(command)
        .map_err(|_| Error::new(-32603, "the agent is ending"))
}

fn capabilities(host: &Host) -> AgentCapabilities {
    AgentCapabilities::new()
        .load_session(host.keeps_sessions())
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
        .session_capabilities(SessionCapabilities::new().close(SessionCloseCapabilities::new()))
}

fn initialized(capabilities: AgentCapabilities) -> InitializeResponse {
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new(
            "dsh-conform",
            env!("CARGO_PKG_VERSION"),
        ))
}

struct Server {
    host: Arc<Host>,
    sessions: HashMap<String, Conversation>,
    turns: JoinSet<()>,
}

impl Server {
    /// Does what the editor wants, until it goes or the cancellation is given.
    async fn run(
        &mut self,
        editor: &ConnectionTo<Client>,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        cancel: &Cancel,
    ) {
        loop {
            let command = tokio::select! {
                biased;
                _ = cancel.cancelled() => return,
                () = editor.incoming_closed() => return,
                Some(done) = self.turns.join_next() => {
                    if let Err(error) = done {
                        tracing::error!("the task of a turn ended with {error}");
                    }
                    continue;
                }
                command = commands.recv() => match command {
                    Some(command) => command,
                    None => return,
                },
            };
            let done = tokio::select! {
                biased;
                _ = cancel.cancelled() => return,
                done = self.act(editor, command) => done,
            };
            if let Err(error) = done {
                tracing::debug!("an answer could not be sent: {}", told(&error));
            }
        }
    }

    async fn act(&mut self, editor: &ConnectionTo<Client>, command: Command) -> Result<(), Error> {
        match command {
            Command::New(request, responder) => {
                let answer = self.new_session(editor, &request).await;
                responder.respond_with_result(answer)
            }
            Command::Load(request, responder) => {
                let answer = self.load_session(editor, &request).await;
                responder.respond_with_result(answer)
            }
            Command::Prompt(request, responder) => self.prompt(&request, responder),
            Command::Cancel(notification) => {
                if let Some(conversation) = self.sessions.get(&*notification.session_id.0) {
                    conversation.cancel(CancelReason::Caller);
                }
                Ok(())
            }
            Command::Close(request, responder) => {
                let id = &*request.session_id.0;
                let Some(conversation) = self.sessions.remove(id) else {
                    return responder.respond_with_error(unknown(id));
                };
                conversation.cancel(CancelReason::Caller);
                self.turns.spawn(async move {
                    conversation.close().await;
                    let _ = responder.respond(CloseSessionResponse::new());
                });
                Ok(())
            }
        }
    }

    async fn new_session(
        &mut self,
        editor: &ConnectionTo<Client>,
        request: &NewSessionRequest,
    ) -> Result<NewSessionResponse, Error> {
        self.has_room()?;
        let cwd = directory(&request.cwd)?;
        let agent = self
            .host
            .open(Some(cwd))
            .await
            .map_err(|error| not_opened(&error))?;
        let id = self.add(editor, agent)?.0;
        let answer = NewSessionResponse::new(id);
        Ok(match unused(&request.mcp_servers) {
            None => answer,
            Some(meta) => answer.meta(meta),
        })
    }

    async fn load_session(
        &mut self,
        editor: &ConnectionTo<Client>,
        request: &LoadSessionRequest,
    ) -> Result<LoadSessionResponse, Error> {
        self.has_room()?;
        let cwd = directory(&request.cwd)?;
        let id = &*request.session_id.0;
        let agent = self
            .host
            .resume(id)
            .await
            .map_err(|error| not_opened(&error))?;
        let begun_in = agent.session().header().cwd.clone().unwrap_or_default();
        if Path::new(cwd) != Path::new(&begun_in) {
            return Err(invalid(format!(
                "session {id} works in {begun_in}, not in {cwd}; open that directory"
            )));
        }
        let (_, conversation) = self.add(editor, agent)?;
        conversation.replay();
        let answer = LoadSessionResponse::new();
        Ok(match unused(&request.mcp_servers) {
            None => answer,
            Some(meta) => answer.meta(meta),
        })
    }

    fn has_room(&self) -> Result<(), Error> {
        if self.sessions.len() < MOST_SESSIONS {
            return Ok(());
        }
        Err(invalid(format!(
            "{MOST_SESSIONS} sessions are open, the most at once; close one of them"
        )))
    }

    fn add(
        &mut self,
        editor: &ConnectionTo<Client>,
        agent: Agent,
    ) -> Result<(String, &Conversation), Error> {
        let id = agent.session().header().id.clone();
        if self.sessions.contains_key(&id) {
            return Err(invalid(format!("session {id} is open already; use it")));
        }
        let conversation = Conversation::new(Arc::clone(&self.host), agent, editor.clone());
        let held = self.sessions.entry(id.clone()).or_insert(conversation);
        Ok((id, held))
    }

    fn prompt(
        &mut self,
        request: &PromptRequest,
        responder: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let id = &*request.session_id.0;
        let Some(conversation) = self.sessions.get(id) else {
            return responder.respond_with_error(unknown(id));
        };
        let content = match translate::prompt(&request.prompt) {
            Ok(content) if content.is_empty() => {
                let error = invalid("the prompt is empty; send at least one block");
                return responder.respond_with_error(error);
            }
            Ok(content) => content,
            Err(problem) => return responder.respond_with_error(invalid(problem)),
        };
        match conversation.prompt(content) {
            Some(turn) => {
                self.turns.spawn(async move {
                    let _ = responder.respond_with_result(turn.await);
                });
                Ok(())
            }
            None => responder.respond_with_error(Error::new(
                -32600,
                format!("a prompt of session {id} runs; wait for its end, or cancel it"),
            )),
        }
    }

    /// Cancels what runs, waits for it, closes the sessions, and disposes the host.
    async fn end(mut self) -> Result<(), ServeError> {
        for conversation in self.sessions.values() {
            conversation.cancel(CancelReason::Disposed);
        }
        let mut ended = Ok(());
        while let Some(done) = self.turns.join_next().await {
            if let Err(error) = done {
                ended = Err(ServeError::Fault(error));
            }
        }
        for (_, conversation) in self.sessions.drain() {
            conversation.close().await;
        }
        let disposed = self.host.dispose().await;
        ended.and(disposed.map_err(ServeError::from))
    }
}

fn directory(cwd: &Path) -> Result<&str, Error> {
    cwd.to_str()
        .ok_or_else(|| invalid("the working directory is no Unicode text; open another one"))
}

/// What an answer says of MCP servers that the editor wanted used.
fn unused(servers: &[McpServer]) -> Option<Map<String, Value>> {
    if servers.is_empty() {
        return None;
    }
    let told = format!(
        "{} MCP servers were given; this agent uses none",
        servers.len()
    );
    tracing::warn!("{told}");
    Some(Map::from_iter([("note".to_owned(), json!(told))]))
}

fn not_opened(error: &OpenError) -> Error {
    Error::new(-32602, error.to_string()).data(json!({"code": error.code()}))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(-32602, message.into())
}

fn unknown(session: &str) -> Error {
    let shown: String = session.chars().take(80).collect();
    invalid(format!("no session {shown:?} is open; open one first"))
}
