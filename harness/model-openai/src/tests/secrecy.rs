//! The key is told to the server and to nobody else.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};

use dsh_agent::{Delta, Model as _};
use dsh_kernel::Cancel;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::server::{Act, Server};
use super::{KEY, STREAM, ask, events, model, request, response};

/// Writes down whatever is traced or logged, at every level.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

impl Everything {
    fn note(&self, text: &str) {
        let mut all = self.0.lock().expect("nobody panics while writing");
        all.push_str(text);
        all.push('\n');
    }
}

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut words = Words(span.metadata().name().to_owned());
        span.record(&mut words);
        self.note(&words.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut words = Words(String::new());
        values.record(&mut words);
        self.note(&words.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(event.metadata().target().to_owned());
        event.record(&mut words);
        self.note(&words.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl log::Log for Everything {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.note(&format!("{} {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// ENV-1 in spirit: with everything logged, through an answer and through failures of all kinds, the
/// key stands in what the server gets and nowhere else.
#[tokio::test]
async fn a_key_reaches_no_log_no_error_and_no_message() {
    static LOGGED: OnceLock<Everything> = OnceLock::new();
    let everything = LOGGED.get_or_init(Everything::default);
    log::set_logger(everything).expect("no other test sets one");
    log::set_max_level(log::LevelFilter::Trace);
    let _traced = tracing::subscriber::set_default(everything.clone());

    let quoting = format!("{{\"error\":{{\"message\":\"no {KEY}\",\"code\":\"{KEY}\"}}}}");
    let json = "200 OK\r\nContent-Type: application/json";
    let moved = format!("302 Moved\r\nLocation: http://127.0.0.1/?key={KEY}");
    let typed = format!("200 OK\r\nContent-Type: text/{KEY}");
    let answers = [
        events(STREAM),
        events(&format!("data: {quoting}\n\n")),
        events(&format!("data: {KEY}\n\n")),
        response(json, &quoting),
        response(json, KEY),
        response(&moved, ""),
        response(&typed, KEY),
        response("401 No", &quoting),
        response("400 No", KEY),
        response("500 No", &quoting),
    ];
    let connections = answers.iter();
    let connections = connections.map(|answer| vec![Act::Send(answer.clone().into())]);
    let mut server = Server::start(connections.collect()).await;
    let model = model(&server.url());
    let mut told = format!("{model:?}\n");
    for (at, _) in answers.iter().enumerate() {
        let outcome = ask(&model).await;
        assert_eq!(outcome.is_ok(), at == 0, "{outcome:?}");
        writeln!(told, "{outcome:?}").expect("a string takes it");
        if let Err(error) = outcome {
            writeln!(told, "{error} {error:#?}").expect("a string takes it");
        }
        assert!(
            server.request().await.head.contains(KEY),
            "the server gets it"
        );
    }
    told.push_str(&everything.0.lock().expect("nobody panics while writing"));
    assert!(told.contains("response"), "something was traced: {told}");
    assert!(!told.contains(KEY), "{told}");
}

/// A model that repeats the key is told and kept without it; a call is carried out as it was said.
#[tokio::test]
async fn a_key_that_the_model_repeats_is_taken_out_of_its_answer() {
    let (begin, end) = KEY.split_at(7);
    let stream = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"reasoning_content\":\"it is {KEY}\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"Use {begin}\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{end}, or sk-0\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\
         \"function\":{{\"name\":\"write\",\"arguments\":\"{{\\\"content\\\":\\\"{KEY}\\\"}}\"}}}}]}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"tool_calls\"}}]}}\n\n\
         data: [DONE]\n\n"
    );
    let server = Server::start(vec![vec![Act::Send(events(&stream).into())]]).await;
    let model = model(&server.url());
    let mut deltas = Vec::new();
    let mut tell = |delta| deltas.push(delta);
    let message = model
        .respond(&request(), &mut tell, &Cancel::new())
        .await
        .unwrap();
    assert_eq!(message.text, "Use [secret], or sk-0");
    assert_eq!(message.reasoning.as_deref(), Some("it is [secret]"));
    let arguments = &message.tool_calls[0].arguments;
    assert_eq!(*arguments, json!({"content": KEY}));
    let text: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, message.text);
    let said = |delta: &&Delta| !matches!(delta, Delta::ToolCall { .. });
    let said: Vec<&Delta> = deltas.iter().filter(said).collect();
    assert!(!format!("{said:?}").contains(end), "{said:?}");
}
