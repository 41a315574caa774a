//! The model against a server that behaves, and against servers that do not.

mod secrecy;
mod server;

use std::sync::Arc;
use std::time::Duration;

use dsh_agent::{Delta, Model as _, ModelError, Retry, model_code};
use dsh_kernel::{Cancel, CancelReason};
use dsh_session::{AssistantMessage, ContentBlock, Message, ModelRequest, Usage};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::rustls;

use self::server::{Act, Server};
use crate::connect::Tls;
use crate::exchange::exchange;
use crate::{OpenAiConfig, OpenAiModel, code};

const KEY: &str = "sk-0123456789abcdef";

const STREAM: &str = "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hé\"}}]}\n\n\
    : keep-alive\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\
    \"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}]}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n\
    data: [DONE]\n\n";

fn request() -> ModelRequest {
    ModelRequest {
        system: "S".to_owned(),
        messages: vec![Message::User {
            content: vec![ContentBlock::text("Q")],
        }],
        tools: vec![],
    }
}

fn model_with(url: &str, change: impl FnOnce(&mut OpenAiConfig)) -> OpenAiModel {
    let mut config = OpenAiConfig::new(url, "m").with_key_from("MODEL_API_KEY");
    change(&mut config);
    OpenAiModel::new(config, |name| {
        (name == "MODEL_API_KEY").then(|| KEY.to_owned())
    })
    .expect("the configuration is fine")
}

fn model(url: &str) -> OpenAiModel {
    model_with(url, |_| {})
}

async fn ask(model: &OpenAiModel) -> Result<AssistantMessage, ModelError> {
    model.respond(&request(), &mut |_| {}, &Cancel::new()).await
}

/// The answer to a server that sends these bytes and closes.
async fn answer_to(response: impl Into<Vec<u8>>) -> Result<AssistantMessage, ModelError> {
    let server = Server::start(vec![vec![Act::Send(response.into())]]).await;
    ask(&model(&server.url())).await
}

fn response(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}")
}

fn events(body: &str) -> String {
    response(
        "200 OK\r\nContent-Type: text/event-stream; charset=utf-8",
        body,
    )
}

/// The stream as chunks of `size` bytes, with an extension and a trailer.
fn chunked(body: &str, size: usize) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for chunk in body.as_bytes().chunks(size) {
        bytes.extend_from_slice(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\nX-Trailer: 1\r\n\r\n");
    bytes
}

#[track_caller]
fn is_whole(message: &AssistantMessage) {
    assert_eq!(message.text, "hé");
    assert_eq!(message.tool_calls.len(), 1);
    assert_eq!(message.tool_calls[0].id, "c");
}

#[track_caller]
fn fails(outcome: Result<AssistantMessage, ModelError>, code: &str, retry: Retry) -> String {
    let error = outcome.expect_err("it cannot be answered");
    assert_eq!((error.code.as_str(), error.retry), (code, retry), "{error}");
    assert!(!error.message.contains(KEY), "{error}");
    error.message
}

const AGAIN: Retry = Retry::After(None);

/// RUN-12: one request goes out as it is to be, and what comes back is the message.
#[tokio::test]
async fn a_request_is_answered() {
    let mut server = Server::start(vec![vec![Act::Send(events(STREAM).into())]]).await;
    let model = model(&server.url());
    let mut deltas = Vec::new();
    let message = model
        .respond(&request(), &mut |delta| deltas.push(delta), &Cancel::new())
        .await
        .expect("it is answered");
    is_whole(&message);
    let usage = Usage {
        input_tokens: 3,
        output_tokens: 2,
    };
    assert_eq!(message.usage, Some(usage));
    assert_eq!(deltas.len(), 2);
    assert_eq!(deltas[0], Delta::Text("hé".to_owned()));
    assert_eq!(model.name(), "m");
    let received = server.request().await;
    let head = received.head.to_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nhost: {}", server.address)),
        "{head}"
    );
    assert!(received.head.contains(&format!("Bearer {KEY}")), "{head}");
    assert_eq!(received.body["messages"][1]["content"], "Q");
    assert_eq!(received.body["stream"], json!(true));
}

#[tokio::test]
async fn how_the_bytes_arrive_makes_no_difference() {
    let mut connections = vec![vec![Act::Drip(events(STREAM).into())]];
    for size in [1, 2, 7, 64, 10_000] {
        connections.push(vec![Act::Send(chunked(STREAM, size))]);
    }
    connections.push(vec![Act::Drip(chunked(STREAM, 3))]);
    connections.push(vec![Act::Send(
        events(&STREAM.replace('\n', "\r\n")).into(),
    )]);
    let count = connections.len();
    let server = Server::start(connections).await;
    let model = model(&server.url());
    for _ in 0..count {
        is_whole(&ask(&model).await.expect("it is answered"));
    }
}

/// Whatever byte a stream breaks off at: the answer is whole, or it is told that it is not.
#[tokio::test]
async fn a_stream_that_is_cut_off_is_never_half_an_answer() {
    for (whole, what) in [
        (
            events(STREAM).into_bytes(),
            "until the end of the connection",
        ),
        (chunked(STREAM, 50), "in chunks"),
    ] {
        let connections = (0..whole.len())
            .map(|at| vec![Act::Send(whole[..at].to_vec())])
            .collect();
        let server = Server::start(connections).await;
        let model = model(&server.url());
        let (mut cut, mut answered) = (0, 0);
        for at in 0..whole.len() {
            match ask(&model).await {
                Ok(message) => {
                    is_whole(&message);
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(
                        error.code,
                        model_code::MODEL_STREAM_CUT,
                        "{what}, {at}: {error}"
                    );
                    assert_eq!(error.retry, AGAIN, "{what}, {at}");
                    assert_eq!(answered, 0, "{what}, {at}: more bytes make it less whole");
                    cut += 1;
                }
            }
        }
        assert!(cut > 300 && answered > 10, "{what}: {cut} and {answered}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_its_pause() {
    let said = r#"{"error":{"message":"slow down"}}"#;
    let json = "Content-Type: application/json";
    let limited = |pause: &str| response(&format!("429 No\r\n{json}\r\n{pause}"), said);
    let after = |seconds| Retry::After(Some(Duration::from_secs(seconds)));
    let text = fails(
        answer_to(limited("Retry-After: 30")).await,
        code::MODEL_RATE_LIMITED,
        after(30),
    );
    assert!(text.contains("429") && text.contains("slow down"), "{text}");
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:50:07 GMT";
    fails(
        answer_to(limited(date)).await,
        code::MODEL_RATE_LIMITED,
        after(30),
    );
    fails(
        answer_to(limited("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT")).await,
        code::MODEL_RATE_LIMITED,
        after(0),
    );
    fails(
        answer_to(limited("X: y")).await,
        code::MODEL_RATE_LIMITED,
        AGAIN,
    );
    fails(
        answer_to(response("503 Busy", "")).await,
        code::MODEL_SERVER,
        AGAIN,
    );
    let quoted = format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#);
    let text = fails(
        answer_to(response("401 No", &quoted)).await,
        code::MODEL_AUTH,
        Retry::Never,
    );
    assert!(
        text.contains("MODEL_API_KEY") && text.contains("wrong key"),
        "{text}"
    );
    // A refusal whose own body breaks off is the same refusal.
    let cut = "HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\nhalf";
    let text = fails(answer_to(cut).await, code::MODEL_BAD_REQUEST, Retry::Never);
    assert!(text.contains("half"), "{text}");
    let long = response("400 Bad", &"x".repeat(1 << 20));
    let text = fails(answer_to(long).await, code::MODEL_BAD_REQUEST, Retry::Never);
    assert!(text.len() < 1000, "{}", text.len());
}

#[tokio::test]
async fn what_is_no_stream_is_told() {
    let json = "200 OK\r\nContent-Type: application/json";
    let fatal = Retry::Never;
    fails(
        answer_to(response(json, r#"{"error":{"message":"x","code":401}}"#)).await,
        code::MODEL_AUTH,
        fatal,
    );
    let html = response("200 OK\r\nContent-Type: text/html", "<h1>Welcome</h1>");
    let text = fails(answer_to(html).await, code::MODEL_BAD_RESPONSE, fatal);
    assert!(
        text.contains("text/html") && text.contains("Welcome"),
        "{text}"
    );
    let packed = "200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip";
    fails(
        answer_to(response(packed, "\u{1f}\u{8b}")).await,
        code::MODEL_BAD_RESPONSE,
        fatal,
    );
    let broken = "data: {\"choices\":[{\"delta\":\n\n";
    fails(
        answer_to(events(broken)).await,
        code::MODEL_BAD_RESPONSE,
        AGAIN,
    );
    let mut bytes = events("data: ").into_bytes();
    bytes.extend_from_slice(b"\xFF\n\n");
    fails(answer_to(bytes).await, code::MODEL_BAD_RESPONSE, AGAIN);
    fails(
        answer_to("SSH-2.0-x\r\n").await,
        code::MODEL_BAD_RESPONSE,
        fatal,
    );
    fails(
        answer_to(response("204 No Content", "")).await,
        code::MODEL_BAD_RESPONSE,
        fatal,
    );
    let whole = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        answer_to(response(json, whole)).await.unwrap().text,
        "whole"
    );
}

#[tokio::test]
async fn lines_and_answers_have_a_size() {
    let line = format!("data: {}", "x".repeat(4096));
    let text = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(600)
    );
    let json = response(
        "200 OK\r\nContent-Type: application/json",
        &"[".repeat(1 << 16),
    );
    for (sent, named) in [
        (events(&line), "maxLineBytes"),
        (events(&text.repeat(2)), "maxResponseBytes"),
        (json, "maxResponseBytes"),
    ] {
        let server = Server::start(vec![vec![Act::Send(sent.into()), Act::Hold]]).await;
        let model = model_with(&server.url(), |config| {
            config.max_line_bytes = 1024;
            config.max_response_bytes = 1024;
        });
        let told = fails(
            ask(&model).await,
            model_code::MODEL_RESPONSE_TOO_LARGE,
            Retry::Never,
        );
        assert!(told.contains(named), "{told}");
    }
}

/// A redirect would carry the key elsewhere.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let mut other = Server::start(vec![vec![Act::Send(events(STREAM).into())]]).await;
        let head = format!(
            "{status} Moved\r\nLocation: {}/v1/chat/completions",
            other.url()
        );
        let told = fails(
            answer_to(response(&head, "")).await,
            code::MODEL_REDIRECTED,
            Retry::Never,
        );
        assert!(told.contains(&other.url()), "{told}");
        assert!(other.is_untouched());
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_by_what_is_wrong() {
    // A port that is taken and that nobody listens on.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let told = fails(ask(&model(&url)).await, code::MODEL_UNREACHABLE, AGAIN);
    assert!(
        told.contains("refused") && told.contains("127.0.0.1"),
        "{told}"
    );
    // No resolver asks anybody about a label that no name can have.
    let nobody = format!("http://{}.invalid", "a".repeat(64));
    let told = fails(ask(&model(&nobody)).await, code::MODEL_DNS, AGAIN);
    assert!(told.contains(".invalid"), "{told}");
}

struct Certified {
    server: Arc<rustls::ServerConfig>,
    client: rustls::ClientConfig,
}

/// A certificate of nobody, a server that has it and a client that trusts it.
fn certified() -> Certified {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("it is made");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key fits");
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(made.cert.der().clone())
        .expect("it is a certificate");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Certified {
        server: Arc::new(server),
        client,
    }
}

#[tokio::test]
async fn a_secured_connection_is_one_with_a_server_that_is_trusted() {
    let certified = certified();
    let answers = vec![vec![Act::Send(events(STREAM).into())]; 2];
    let server = Server::start_with(answers, Some(Arc::clone(&certified.server))).await;
    let url = format!("https://{}", server.address);
    let told = fails(ask(&model(&url)).await, code::MODEL_TLS, Retry::Never);
    assert!(told.contains("certificate"), "{told}");
    let trusting = model(&url).with_tls(Tls::with(certified.client));
    is_whole(&ask(&trusting).await.expect("it is answered"));
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("somebody comes");
        let mut hello = [0; 64];
        let _ = socket.read(&mut hello).await;
        let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 No\r\n\r\n").await;
        // The client's word comes first: closing with bytes unread would be a reset.
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let trusting = model(&url).with_tls(Tls::with(certified().client));
    fails(ask(&trusting).await, code::MODEL_TLS, Retry::Never);
}

#[tokio::test]
async fn a_cancelled_request_closes_its_connection_at_once() {
    let begin = events("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    let mut server = Server::start(vec![vec![Act::Send(begin.into()), Act::Hold]; 2]).await;
    let model = model(&server.url());
    let cancel = Cancel::new();
    let mut tell = |_| {
        cancel.cancel(CancelReason::Caller);
    };
    let outcome = model.respond(&request(), &mut tell, &cancel).await;
    let told = fails(outcome, model_code::MODEL_CANCELLED, Retry::Never);
    assert!(told.contains("cancelled by the caller"), "{told}");
    server.request().await;
    server.closed().await;
    // The same when the caller just lets go.
    let (tell, mut told) = mpsc::unbounded_channel();
    let ask = request();
    let mut tell = |delta| tell.send(delta).expect("somebody listens");
    let cancel = Cancel::new();
    tokio::select! {
        outcome = model.respond(&ask, &mut tell, &cancel) => panic!("{outcome:?}"),
        delta = told.recv() => assert!(delta.is_some()),
    }
    server.request().await;
    server.closed().await;
    // And one that is cancelled beforehand connects to nobody.
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Disposed);
    let outcome = model.respond(&request(), &mut |_| {}, &cancel).await;
    fails(outcome, model_code::MODEL_CANCELLED, Retry::Never);
}

/// An exchange with a peer in this process, on the paused clock.
async fn exchange_with(acts: Vec<Act>) -> Result<AssistantMessage, ModelError> {
    let (near, far) = tokio::io::duplex(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (tell, _seen) = mpsc::unbounded_channel();
        server::act(far, acts, &tell).await;
    });
    let model = model("http://host");
    let endpoint = model.endpoint();
    exchange(Box::new(near), endpoint, b"{}".to_vec(), 0, &mut |_| {}).await
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_given_up() {
    let begin = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for acts in [
        vec![Act::Hold],
        vec![Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Act::Hold],
        vec![Act::Send(events(begin).into()), Act::Hold],
        vec![Act::Send(events("da").into()), Act::Hold],
    ] {
        let before = tokio::time::Instant::now();
        let told = fails(exchange_with(acts).await, code::MODEL_STALLED, AGAIN);
        assert!(
            told.contains("120000 ms") && told.contains("idleTimeoutMs"),
            "{told}"
        );
        assert_eq!(before.elapsed().as_secs(), 120);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_but_not_silent_is_waited_for() {
    let (near, far) = tokio::io::duplex(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut read, mut write) = tokio::io::split(far);
        let mut asked = [0; 32];
        read.read_exact(&mut asked).await.expect("it asks");
        for piece in events(STREAM).as_bytes().chunks(100) {
            let pause = std::future::pending::<()>();
            let _ = tokio::time::timeout(Duration::from_secs(119), pause).await;
            tokio::io::AsyncWriteExt::write_all(&mut write, piece)
                .await
                .expect("it listens");
        }
    });
    let model = model("http://host");
    let before = tokio::time::Instant::now();
    let endpoint = model.endpoint();
    let answered = exchange(Box::new(near), endpoint, b"{}".to_vec(), 0, &mut |_| {}).await;
    is_whole(&answered.expect("it is answered"));
    assert!(before.elapsed() > Duration::from_secs(400));
}

#[tokio::test]
async fn a_proxy_is_asked_when_the_environment_s_are_wanted() {
    let mut proxy = Server::start(vec![
        vec![Act::Send(events(STREAM).into())],
        vec![Act::Send(b"HTTP/1.1 403 No\r\n\r\n".to_vec())],
    ])
    .await;
    let through = |base: &str| {
        let mut config = OpenAiConfig::new(base, "m");
        config.proxy_from_environment = true;
        let address = format!("http://user:hunter2@{}", proxy.address);
        OpenAiModel::new(config, move |name| {
            (name == "ALL_PROXY").then(|| address.clone())
        })
        .expect("the configuration is fine")
    };
    let (plain, secured) = (
        through("http://host.invalid"),
        through("https://host.invalid"),
    );
    is_whole(&ask(&plain).await.expect("it is answered"));
    let told = ask(&secured).await.expect_err("the proxy refuses");
    assert_eq!(told.code, code::MODEL_UNREACHABLE);
    assert!(told.message.contains("proxy"), "{told}");
    assert!(!format!("{told} {secured:?}").contains("hunter2"), "{told}");
    let first = proxy.request().await.head;
    assert!(
        first.starts_with("POST http://host.invalid/v1/chat/completions HTTP/1.1"),
        "{first}"
    );
    assert!(
        first.to_lowercase().contains("proxy-authorization: basic "),
        "{first}"
    );
    let second = proxy.request().await.head;
    assert!(
        second.starts_with("CONNECT host.invalid:443 HTTP/1.1"),
        "{second}"
    );
}
