//! The formats of requests and answers of Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini's
//! `generateContent`. Answers are streamed if the agent asks for that.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Answer, Turn};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    Messages,
    Chat,
    Responses,
    Gemini { streamed: bool },
}

fn api(path: &str) -> Option<Api> {
    Some(if path.ends_with("/messages") {
        Api::Messages
    } else if path.ends_with("/chat/completions") {
        Api::Chat
    } else if path.ends_with("/responses") {
        Api::Responses
    } else if path.contains(":generateContent") || path.contains(":streamGenerateContent") {
        Api::Gemini { streamed: path.contains(":stream") }
    } else {
        return None;
    })
}

/// Answers requests for metadata, such as the list of models or a count of tokens.
pub(super) fn metadata(path: &str) -> (&'static str, String) {
    let answer = if path.contains("models") {
        let model = json!({
            "id": "scripted", "object": "model", "type": "model", "display_name": "Scripted", "created": 1,
            "created_at": "2026-01-01T00:00:00Z", "owned_by": "nobody", "context_length": 200_000,
        });
        json!({ "object": "list", "data": [model], "models": [], "has_more": false })
    } else if path.ends_with("/count_tokens") {
        json!({ "input_tokens": 10 })
    } else if path.ends_with(":countTokens") {
        json!({ "totalTokens": 10 })
    } else {
        json!({})
    };
    (JSON, answer.to_string())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the messages after the last one for which `is_users` is true.
fn after(messages: &[Value], is_users: impl Fn(&Value) -> bool) -> &[Value] {
    let start = messages.iter().rposition(is_users).map_or(0, |at| at + 1);
    &messages[start..]
}

/// Reads a request. Returns `None` if its path isn't that of a model.
pub(super) fn read(path: &str, asked: &Value) -> Option<Turn> {
    let api = api(path)?;
    let mut tools = Vec::new();
    for tool in list(&asked["tools"]) {
        let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
        if tool["type"] == "namespace" {
            let namespace = name(tool);
            tools.extend(
                list(&tool["tools"]).iter().filter_map(|tool| Some((name(tool)?, namespace.clone()))),
            );
        } else if let Some(functions) = tool["functionDeclarations"].as_array() {
            tools.extend(functions.iter().filter_map(|tool| Some((name(tool)?, None))));
        } else {
            tools.extend(name(tool).or_else(|| name(&tool["function"])).map(|name| (name, None)));
        }
    }
    let done = match api {
        Api::Messages => {
            let parts = |message: &Value, kind: &str| -> Vec<Value> {
                list(&message["content"]).iter().filter(|part| part["type"] == kind).cloned().collect()
            };
            let is_injected = |message: &Value| {
                let texts = parts(message, "text");
                let reminds = |part: &Value| text(&part["text"]).starts_with("<system-reminder");
                !parts(message, "tool_result").is_empty() || (!texts.is_empty() && texts.iter().all(reminds))
            };
            let messages =
                after(list(&asked["messages"]), |message| message["role"] == "user" && !is_injected(message));
            let calls = messages.iter().flat_map(|message| parts(message, "tool_use"));
            calls.map(|call| (text(&call["name"]), call["input"].to_string())).collect()
        }
        Api::Chat => {
            let messages = after(list(&asked["messages"]), |message| message["role"] == "user");
            let calls = messages.iter().flat_map(|message| list(&message["tool_calls"]));
            calls
                .map(|call| (text(&call["function"]["name"]), text(&call["function"]["arguments"])))
                .collect()
        }
        Api::Responses => {
            let items = after(list(&asked["input"]), |message| message["role"] == "user");
            let calls = items.iter().filter(|item| item["type"] == "function_call");
            calls.map(|call| (text(&call["name"]), text(&call["arguments"]))).collect()
        }
        Api::Gemini { .. } => {
            let has = |message: &Value, kind: &str| {
                list(&message["parts"]).iter().any(|part| part.get(kind).is_some())
            };
            let messages = after(list(&asked["contents"]), |message| {
                message["role"] == "user" && !has(message, "functionResponse")
            });
            let calls =
                messages.iter().flat_map(|message| list(&message["parts"])).map(|part| &part["functionCall"]);
            calls
                .filter(|call| !call.is_null())
                .map(|call| (text(&call["name"]), call["args"].to_string()))
                .collect()
        }
    };
    Some(Turn { tools, done })
}

/// Writes an answer in the format of the API, and returns the content type and the body.
pub(super) fn write(path: &str, asked: &Value, answer: Answer) -> (&'static str, String) {
    let streamed = asked["stream"] == true;
    match api(path) {
        Some(Api::Messages) => messages(asked, answer, streamed),
        Some(Api::Chat) => chat(asked, answer, streamed),
        Some(Api::Responses) => responses(asked, answer, streamed),
        Some(Api::Gemini { streamed }) => gemini(asked, answer, streamed),
        None => metadata(path),
    }
}

/// Writes a stream of events, each with its name if it has one.
fn events<'e>(events: impl IntoIterator<Item = (Option<&'e str>, String)>) -> (&'static str, String) {
    let mut all = String::new();
    for (name, data) in events {
        if let Some(name) = name {
            let _ = writeln!(all, "event: {name}");
        }
        let _ = write!(all, "data: {data}\n\n");
    }
    (EVENTS, all)
}

fn named(all: &[Value]) -> (&'static str, String) {
    events(all.iter().map(|event| (event["type"].as_str(), event.to_string())))
}

/// Returns a unique id.
fn id(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}{:012}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn messages(asked: &Value, answer: Answer, streamed: bool) -> (&'static str, String) {
    let (block, empty, delta, stop) = match answer {
        Answer::Text(text) => (
            json!({ "type": "text", "text": text }),
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
        Answer::Call { name, arguments, .. } => {
            let id = id("toolu_");
            (
                json!({ "type": "tool_use", "id": id, "name": name, "input": arguments }),
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
                "tool_use",
            )
        }
    };
    let mut message = json!({
        "id": id("msg_"), "type": "message", "role": "assistant", "model": asked["model"], "content": [block],
        "stop_reason": stop, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 5 },
    });
    if !streamed {
        return (JSON, message.to_string());
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let end = json!({ "stop_reason": stop, "stop_sequence": null });
    named(&[
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ])
}

fn chat(asked: &Value, answer: Answer, streamed: bool) -> (&'static str, String) {
    let (delta, finish) = match answer {
        Answer::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Answer::Call { name, arguments, .. } => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": id("call_"), "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
    };
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let whole = |object: &str, choices: Value| {
        json!({
            "id": id("chatcmpl-"), "created": 1_790_000_000, "model": asked["model"], "object": object, "choices": choices,
        })
    };
    if !streamed {
        let choice = json!({ "index": 0, "message": delta, "finish_reason": finish });
        let mut answer = whole("chat.completion", json!([choice]));
        answer["usage"] = usage;
        return (JSON, answer.to_string());
    }
    let part = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        whole("chat.completion.chunk", json!([choice])).to_string()
    };
    let mut last = whole("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    let parts =
        [part(delta, Value::Null), part(json!({}), finish.into()), last.to_string(), "[DONE]".to_owned()];
    events(parts.map(|part| (None, part)))
}

fn responses(asked: &Value, answer: Answer, streamed: bool) -> (&'static str, String) {
    // Some agents send extra requests to review a call or to generate a title, which have to be answered with JSON.
    let format = asked["text"]["format"].to_string();
    let aside = if format.contains("\"outcome\"") {
        let verdict = json!({
            "outcome": "allow", "risk_level": "low", "user_authorization": "high", "rationale": "scripted",
        });
        Some(verdict.to_string())
    } else if format.contains("\"title\"") {
        Some(json!({ "title": "A title" }).to_string())
    } else {
        None
    };
    let says = |text: String| {
        let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
        json!({ "type": "message", "id": id("msg_"), "role": "assistant", "status": "completed", "content": content })
    };
    let item = match (aside, answer) {
        (Some(text), _) => says(text),
        (None, Answer::Text(text)) => says(text.to_owned()),
        (None, Answer::Call { name, namespace, arguments }) => {
            let mut item = json!({
                "type": "function_call", "id": id("fc_"), "call_id": id("call_"), "name": name,
                "arguments": arguments.to_string(), "status": "completed",
            });
            if let Some(namespace) = namespace {
                item["namespace"] = namespace.into();
            }
            item
        }
    };
    let mut begun = item.clone();
    begun["status"] = "in_progress".into();
    if item["type"] == "message" {
        begun["content"] = json!([]);
    } else {
        begun["arguments"] = "".into();
    }
    let mut response = json!({
        "id": id("resp_"), "object": "response", "created_at": 1_790_000_000, "model": asked["model"], "status": "completed",
        "output": [item],
        "usage": {
            "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 5,
            "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
        },
    });
    if !streamed {
        return (JSON, response.to_string());
    }
    let completed = json!({ "type": "response.completed", "response": response });
    response["status"] = "in_progress".into();
    response["output"] = json!([]);
    response["usage"] = Value::Null;
    let mut all = vec![
        json!({ "type": "response.created", "response": response }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": begun }),
    ];
    if item["type"] == "message" {
        let text = &item["content"][0]["text"];
        all.push(json!({
            "type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": text,
        }));
    }
    all.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
    all.push(completed);
    for (number, event) in all.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    named(&all)
}

fn gemini(asked: &Value, answer: Answer, streamed: bool) -> (&'static str, String) {
    let options = &asked["generationConfig"];
    // Some agents send extra requests to choose a model or the next speaker, which have to be answered with JSON.
    let wants_json = options["responseMimeType"] == JSON || options.get("responseJsonSchema").is_some();
    let part = match answer {
        _ if wants_json => {
            let all = json!({
                "reasoning": "x", "model_choice": "flash", "complexity_reasoning": "x", "complexity_score": 10,
                "next_speaker": "user", "corrected_target_snippet": "",
            });
            json!({ "text": all.to_string() })
        }
        Answer::Text(text) => json!({ "text": text }),
        Answer::Call { name, arguments, .. } => {
            json!({ "functionCall": { "name": name, "args": arguments } })
        }
    };
    let candidate =
        json!({ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 });
    let usage = json!({ "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 });
    let response =
        json!({ "candidates": [candidate], "modelVersion": "scripted", "usageMetadata": usage }).to_string();
    if streamed { events([(None, response)]) } else { (JSON, response) }
}
