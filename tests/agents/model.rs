//! The scripted model: a server on loopback that implements the providers' APIs, calls the tools that a test chooses for each
//! turn, and records all requests.
//!
//! | file | owns |
//! |---|---|
//! | `model` | the server, the script, and the recorded requests |
//! | `shapes` | the formats of requests and answers of each API |

mod shapes;

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header::CONTENT_TYPE, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};

use crate::catalogue::Step;

/// The model's answer after it has made all its calls.
pub(crate) const REPLY: &str = "All is done.";

/// A running model.
#[derive(Clone)]
pub(crate) struct Model {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    find: Option<Step>,
    via: Option<Step>,
    with: Map<String, Value>,
    calls: Vec<Call>,
    /// True if answers are held back.
    is_muted: bool,
    requests: Vec<Value>,
}

/// A call of one of our tools, for the model to make.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// The parts of a request that decide the answer, in all APIs.
struct Turn {
    /// The available tools: the name of each, and its namespace if it has one.
    tools: Vec<(String, Option<String>)>,
    /// The calls since the last message of the user: name and arguments.
    done: Vec<(String, String)>,
}

/// An answer of the model.
enum Answer {
    Text(&'static str),
    Call { name: String, namespace: Option<String>, arguments: Value },
}

impl Model {
    /// Starts a model. `find` and `via` say how it finds and calls tools that the agent hides, and `with` has members that it
    /// adds to the arguments of each call.
    pub(crate) fn start(find: Option<Step>, via: Option<Step>, with: Map<String, Value>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let model =
            Self { address, state: Arc::new(Mutex::new(State { find, via, with, ..State::default() })) };
        let served = model.clone();
        // We never stop this thread. It will run until the test process exits.
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(served.serve(listener));
        });
        model
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the calls that the model makes in each turn from now on, one after the other.
    pub(crate) fn set_calls(&self, calls: &[Call]) {
        self.state().calls = calls.to_vec();
    }

    /// Holds back all answers while `is_muted` is true.
    pub(crate) fn set_muted(&self, is_muted: bool) {
        self.state().is_muted = is_muted;
    }

    /// Returns the requests since the last call of this function, and forgets them.
    pub(crate) fn take_requests(&self) -> Vec<Value> {
        std::mem::take(&mut self.state().requests)
    }

    /// Returns true if there were requests since the last call of [`take_requests`](Self::take_requests).
    pub(crate) fn has_requests(&self) -> bool {
        !self.state().requests.is_empty()
    }

    async fn serve(self, listener: std::net::TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        while let Ok((stream, _)) = listener.accept().await {
            let model = self.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let model = model.clone();
                    async move { Ok::<_, Infallible>(model.respond(request).await) }
                });
                // This might fail if the agent closes the connection early.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let is_post = request.method() == hyper::Method::POST;
        let path = request.uri().path().to_owned();
        let body =
            request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let asked: Option<Value> = serde_json::from_slice(&body).ok();
        let (kind, text) = match asked.filter(|asked| is_post && asked.is_object()) {
            Some(asked) => {
                let answer = shapes::read(&path, &asked).map(|turn| self.decide(&turn));
                if answer.is_some() {
                    self.state().requests.push(asked.clone());
                }
                while answer.is_some() && self.state().is_muted {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                answer.map_or_else(|| shapes::metadata(&path), |answer| shapes::write(&path, &asked, answer))
            }
            None => shapes::metadata(&path),
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("a type"));
        response
    }

    /// Returns the next call of the script that this turn has not made yet and can make, or the final text.
    fn decide(&self, turn: &Turn) -> Answer {
        let state = self.state();
        for call in &state.calls {
            let is_find = |name: &str| state.find.as_ref().is_some_and(|find| find.tool == name);
            let is_via = |name: &str| state.via.as_ref().is_some_and(|via| via.tool == name);
            let is_done = turn.done.iter().any(|(name, arguments)| {
                !is_find(name)
                    && (name.contains(call.tool) || (is_via(name) && arguments.contains(call.tool)))
            });
            if is_done {
                continue;
            }
            // This could also be a tool of the agent that happens to have this name, so make sure that it's ours.
            let is_ours = |(name, namespace): &&(String, Option<String>)| {
                name.ends_with(call.tool)
                    && (name.contains("acp-skills")
                        || name.contains("acp_skills")
                        || namespace.as_ref().is_some_and(|namespace| namespace.contains("skills")))
            };
            // Other agents don't add a prefix to the name, so if we can't find our tool with one, look for the plain name.
            let is_plain = |(name, _): &&(String, Option<String>)| name == call.tool;
            let ours = turn.tools.iter().find(is_ours).or_else(|| turn.tools.iter().find(is_plain));
            if let Some((name, namespace)) = ours {
                let mut arguments = call.arguments.clone();
                if let Some(arguments) = arguments.as_object_mut() {
                    arguments.extend(state.with.clone());
                }
                return Answer::Call { name: name.clone(), namespace: namespace.clone(), arguments };
            }
            let step = |step: &Step| Answer::Call {
                name: step.tool.clone(),
                namespace: None,
                arguments: filled(&step.arguments, call),
            };
            let offers = |step: &&Step| turn.tools.iter().any(|(name, _)| *name == step.tool);
            let has_found = state.find.is_none()
                || turn.done.iter().any(|(name, arguments)| is_find(name) && arguments.contains(call.tool));
            if let Some(find) = state.find.as_ref().filter(offers).filter(|_| !has_found) {
                return step(find);
            }
            if let Some(via) = state.via.as_ref().filter(offers).filter(|_| has_found) {
                return step(via);
            }
        }
        Answer::Text(REPLY)
    }
}

fn filled(value: &Value, call: &Call) -> Value {
    match value {
        Value::String(text) if text == "{arguments}" => call.arguments.clone(),
        Value::String(text) => text.replace("{tool}", call.tool).into(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), filled(value, call)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| filled(item, call)).collect(),
        other => json!(other),
    }
}
