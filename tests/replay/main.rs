//! Conversations with real agents, played through the interceptor again.
//!
//! `recordings/direct` holds what clients and agents said to each other without a proxy: with one in between, each side
//! must see the same bytes, but for what the proxy declares to add. `recordings/proxied` holds what agents said while
//! they remembered text of ours: the client must see what its user typed, and no word of ours.
//!
//! `recordings/clients` holds what clients send: the ways in which they put together what was typed and what goes with it.
//!
//! What was recorded is what agents do; what else they might say is made from the schema (`generated`).
//!
//! A recording is a file of lines `{"dir":"client"|"agent","msg":…}`; every file that is there is played, and each
//! `initialize` begins a new process. Names, paths and tokens in them were replaced, long texts shortened.

mod clients;
mod generated;
mod play;
#[expect(clippy::disallowed_methods, reason = "recordings are files")]
mod recording;

use std::collections::HashSet;

use acp_skills_intercept::{Approve, CatalogIn, Mark, McpMode, Policy, Titles};
use acp_skills_wire::Node;
use expect_test::expect;
use serde_json::{Value, json};

use self::{
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

/// Words that the client must never see.
const OURS: [&str; 2] = ["acp-skills-proxy", "available_skills"];

#[test]
fn each_side_sees_the_same_but_for_what_is_declared() {
    let recordings = recordings("direct");
    assert!(recordings.len() >= 5, "{} recordings", recordings.len());
    for recording in &recordings {
        for mcp in [McpMode::Auto, McpMode::Stdio, McpMode::Off] {
            for catalog_in in [CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off] {
                differential(recording, policy(mcp, catalog_in));
            }
        }
    }
}

#[test]
fn of_every_message_that_there_is() {
    for counts in generated::counts() {
        assert!(counts.iter().all(|&count| count > 0), "the schema is read wrongly: {counts:?}");
    }
    for conversation in generated::conversations(0..4) {
        for mcp in [McpMode::Auto, McpMode::Stdio, McpMode::Off] {
            for catalog_in in [CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off] {
                differential(&conversation, policy(mcp, catalog_in));
            }
        }
    }
}

/// Plays a recording and compares every line of both sides.
fn differential(recording: &Recording, policy: Policy) {
    let case = format!("{} {:?} {:?}", recording.name, policy.mcp, policy.catalog_in);
    let mut proxy = Proxy::new(&policy, "review");
    let mut expected = Expected::default();
    let mut added = 0;
    for (number, (side, line)) in recording.lines.iter().enumerate() {
        let case = format!("{case} line {}", number + 1);
        let message: Value = serde_json::from_str(line).unwrap();
        if *side == Side::Client && message["method"] == "initialize" {
            proxy = Proxy::new(&policy, "review");
            expected = Expected::default();
        }
        let seen = proxy.play(*side, line);
        let (same, other) = match side {
            Side::Client => (seen.to_agent, seen.to_client),
            Side::Agent => (seen.to_client, seen.to_agent),
        };
        assert!(other.is_empty(), "{case}: {other:?}");
        // Behind the answer that opens a session comes the menu of an agent that listed its commands before it.
        let (same, menus): (Vec<_>, Vec<_>) =
            same.into_iter().partition(|same| same == line || !is_menu_of_ours(same, line));
        assert!(
            menus.len() <= 1 && (menus.is_empty() || message["result"]["sessionId"].is_string()),
            "{case}"
        );
        let [same] = &same[..] else { panic!("{case}: {} lines for {line}", same.len()) };
        let restored = match side {
            Side::Client => expected.without_ours(&message, same, &policy),
            Side::Agent => {
                expected.hear(&message);
                without_our_commands(line, same)
            }
        };
        added += usize::from(same != line);
        assert_eq!(&restored, line, "{case}");
    }
    let nothing = policy.mcp == McpMode::Off && policy.catalog_in == CatalogIn::Off;
    assert!(added > 0 || nothing, "{case}: nothing was added anywhere");
}

/// What is to be added where, worked out from the conversation alone.
#[derive(Default)]
struct Expected {
    takes_system_prompt: bool,
    /// Sessions whose model knows the catalog.
    told: HashSet<String>,
    /// Requests to fork a session whose model knows the catalog, by id.
    forks: Vec<Value>,
}

impl Expected {
    /// Learns from what the agent says.
    fn hear(&mut self, message: &Value) {
        // Where the two versions of the protocol have it.
        let v1 = "/result/agentCapabilities/sessionCapabilities/systemPrompt";
        let v2 = "/result/capabilities/session/systemPrompt";
        let marker = message.pointer(v1).or_else(|| message.pointer(v2));
        self.takes_system_prompt |= marker.is_some_and(Value::is_object);
        if self.forks.contains(&message["id"]) {
            self.told.extend(message["result"]["sessionId"].as_str().map(str::to_owned));
        }
    }

    /// `sent` without what the proxy is to add to `message`; fails when it is not there.
    fn without_ours(&mut self, message: &Value, sent: &str, policy: &Policy) -> String {
        let in_system = self.takes_system_prompt && policy.catalog_in == CatalogIn::Auto;
        match message["method"].as_str() {
            Some("session/new" | "session/load" | "session/resume" | "session/fork") => {
                let parent = message["params"]["sessionId"].as_str();
                if message["method"] == "session/fork" && parent.is_some_and(|id| self.told.contains(id)) {
                    self.forks.push(message["id"].clone());
                }
                let mut sent = sent.to_owned();
                let edited: Value = serde_json::from_str(&sent).unwrap();
                if policy.mcp != McpMode::Off {
                    let servers = edited["params"]["mcpServers"].as_array().unwrap();
                    let theirs = message["params"].get("mcpServers").map(|theirs| theirs.as_array().unwrap());
                    assert_eq!(servers.len(), theirs.map_or(0, Vec::len) + 1);
                    let ours = servers.last().unwrap();
                    // Hermes is given another name for each session.
                    let name = ours["name"].as_str().unwrap();
                    assert!(name == "acp-skills" || name.starts_with("acp-skills-"), "{name}");
                    sent = match theirs {
                        Some(theirs) => without(&sent, &ours.to_string(), !theirs.is_empty()),
                        None => without(&sent, &format!("\"mcpServers\":[{ours}]"), true),
                    };
                }
                if in_system {
                    let ours = &edited["params"]["systemPrompt"];
                    assert_eq!(ours["mode"], "append");
                    let [block] = &ours["content"].as_array().unwrap()[..] else { panic!("{ours}") };
                    assert_is_catalog(block);
                    sent = without(&sent, &format!("\"systemPrompt\":{ours}"), true);
                }
                // Claude's adapter is told that our reading tools need no permission.
                if message["params"].get("_meta").is_none()
                    && let Some(ours) = edited["params"].get("_meta")
                {
                    let tools = &ours["claudeCode"]["options"]["allowedTools"];
                    let ours_alone = json!({ "claudeCode": { "options": { "allowedTools": tools } } });
                    assert_eq!(ours, &ours_alone);
                    let tools = tools.as_array().unwrap().iter();
                    assert!(tools.clone().count() == 3 && tools.clone().all(is_ours), "{ours}");
                    sent = without(&sent, &format!("\"_meta\":{ours}"), true);
                }
                sent
            }
            Some("session/prompt") => {
                let session = message["params"]["sessionId"].as_str().unwrap();
                let blocks = message["params"]["prompt"].as_array().unwrap();
                let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
                let is_command = texts.any(|text| text.trim_start().starts_with(['/', '$']));
                let is_due = policy.catalog_in != CatalogIn::Off && !in_system && !is_command;
                if !is_due || !self.told.insert(session.to_owned()) {
                    return sent.to_owned();
                }
                let edited: Value = serde_json::from_str(sent).unwrap();
                let prompt = edited["params"]["prompt"].as_array().unwrap();
                assert_eq!(prompt.len(), blocks.len() + 1);
                // Behind the user's blocks, for agents that show a model how prompts begin.
                if !blocks.is_empty() && prompt[..blocks.len()] == blocks[..] {
                    assert_is_catalog(&prompt[blocks.len()]);
                    return without(sent, &prompt[blocks.len()].to_string(), true);
                }
                assert_is_catalog(&prompt[0]);
                let comma = if blocks.is_empty() { "" } else { "," };
                let ours = format!("{}{comma}", prompt[0]);
                without(sent, &ours, false)
            }
            _ => sent.to_owned(),
        }
    }
}

/// Takes our texts, closed or cut off, out of all strings, and makes one line of each.
fn without_ours(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut clean = String::new();
            let mut rest = text.as_str();
            while let Some((before, ours)) = rest.split_once("<acp-skills-proxy:") {
                clean += before;
                rest = ours
                    .split_once("</acp-skills-proxy:")
                    .and_then(|(_, end)| end.split_once('>'))
                    .map_or("", |it| it.1);
            }
            clean += rest;
            *text = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        Value::Array(items) => items.iter_mut().for_each(without_ours),
        Value::Object(members) => members.values_mut().for_each(without_ours),
        _ => {}
    }
}

fn is_ours(tool: &Value) -> bool {
    tool.as_str().is_some_and(|tool| tool.starts_with("mcp__acp-skills__"))
}

fn assert_is_catalog(block: &Value) {
    let text = block["text"].as_str().unwrap();
    let mark = Mark::new(play::RUN);
    assert!(
        text.starts_with(&mark.open())
            && text.strip_suffix('\n').is_some_and(|text| text.ends_with(&mark.close()))
            && text.contains("<name>review</name>"),
        "{text}"
    );
}

/// `text` without the only place where `piece` stands, and without the comma before it.
fn without(text: &str, piece: &str, comma: bool) -> String {
    let piece = if comma { format!(",{piece}") } else { piece.to_owned() };
    assert_eq!(text.matches(&piece).count(), 1, "{piece} in {text}");
    text.replacen(&piece, "", 1)
}

/// Whether a line is a list of commands that the agent did not send just now.
fn is_menu_of_ours(seen: &str, said: &str) -> bool {
    let is_menu = |line: &str| line.contains("\"available_commands_update\"");
    is_menu(seen) && !is_menu(said)
}

/// A line for the client without the commands that the proxy adds in front of those of the agent.
fn without_our_commands(said: &str, seen: &str) -> String {
    let list = |line| {
        let message = Node::parse(line)?;
        let update = message.at(&["params", "update", "availableCommands"]);
        update.or_else(|| message.at(&["result", "availableCommands"]))
    };
    let (theirs, all) = match (list(said.as_bytes()), list(seen.as_bytes())) {
        (Some(theirs), Some(all)) => (theirs, all),
        // The agent has none, and says nothing of them.
        (None, Some(all)) => {
            let list = String::from_utf8_lossy(all.raw());
            let result = Node::parse(said.as_bytes()).and_then(|message| message.get("result"));
            let comma = result.is_some_and(|result| result.members().next().is_some());
            return without(seen, &format!("\"availableCommands\":{list}"), comma);
        }
        _ => return seen.to_owned(),
    };
    let count = all.elements().count() - theirs.elements().count();
    let Some(last) = all.elements().take(count).last() else { return seen.to_owned() };
    assert!(all.elements().take(count).all(|ours| ours.str("name").is_some()), "{seen}");
    // From the bracket to the comma behind the last of ours.
    let comma = usize::from(theirs.elements().next().is_some());
    format!("{}{}", &seen[..=all.span().start], &seen[last.span().end + comma..])
}

/// Calls of our tools have titles for people, live and in what is replayed; whatever else the agent says is untouched.
#[test]
fn calls_of_ours_have_titles_for_people() {
    let mut seen_titles = HashSet::new();
    for recording in &recordings("proxied") {
        let policy = policy(McpMode::Auto, CatalogIn::Off);
        let new = |titles| Proxy::new(&Policy { approve: Approve::None, titles, ..policy.clone() }, "demo");
        let (mut people, mut agent) = (new(Titles::People), new(Titles::Agent));
        for (side, line) in &recording.lines {
            if *side == Side::Client && line.contains("\"initialize\"") {
                (people, agent) = (new(Titles::People), new(Titles::Agent));
            }
            let (seen, said) = (people.play(*side, line).to_client, agent.play(*side, line).to_client);
            assert_eq!(seen.len(), said.len(), "{line}");
            for (seen, said) in seen.iter().zip(&said).filter(|(seen, said)| seen != said) {
                let (mut seen, mut said): (Value, Value) =
                    (serde_json::from_str(seen).unwrap(), serde_json::from_str(said).unwrap());
                let paths = ["/params/update", "/params/toolCall", "/params/subject/toolCall"];
                let call = |message: &mut Value| {
                    let path = paths.iter().find(|path| message.pointer(path).is_some()).expect("a call");
                    let call = message.pointer_mut(path).unwrap().as_object_mut().unwrap();
                    (call.remove("title"), call.remove("kind"))
                };
                let (title, _) = call(&mut seen);
                call(&mut said);
                assert_eq!(seen, said, "{}", recording.name);
                let title = title.expect("what changes has a title");
                seen_titles.insert(format!("{}: {}", recording.name, title.as_str().unwrap()));
            }
        }
    }
    let mut titles: Vec<_> = seen_titles.into_iter().collect();
    titles.sort();
    expect![[r#"
        agentao: Skill: demo
        claude-v2: Skill
        claude-v2: Skill: demo
        claude: Skill
        claude: Skill: demo
        codex: Skill: demo
        factory-droid: Skill
        factory-droid: Skill: demo
        fast-agent: Skill
        fast-agent: Skill: demo
        gemini: Skill: demo
        grok-build: Skill: demo
        kilo: Skill
        kilo: Skill: demo
        kimi-code: Skill: demo
        opencode: Skill
        opencode: Skill: demo
        qwen-code: Skill: demo"#]]
    .assert_eq(&titles.join("\n"));
}

#[test]
fn what_agents_remember_comes_back_without_our_words() {
    let recordings = recordings("proxied");
    let (mut chunks, mut titles) = (0, 0);
    for recording in &recordings {
        for skill in ["demo", "other"] {
            let found = Clean::default().play(recording, skill);
            chunks += found.chunks;
            titles += found.titles;
        }
    }
    // The recordings are of agents that show what they remember.
    assert!(chunks > 0 && titles > 0, "{chunks} chunks and {titles} titles held text of ours");
}

/// Plays a recording of an agent that remembers text of ours.
#[derive(Default)]
struct Clean {
    /// What the user typed and the agent was told, each prompt as one text.
    typed: Vec<String>,
    /// The blocks of those prompts that are no commands.
    blocks: Vec<String>,
    /// What the client has seen of the history since it asked for it.
    history: String,
    /// The agent showed something of the history; some show nothing.
    replays: bool,
    loading: Option<Value>,
    chunks: usize,
    titles: usize,
}

impl Clean {
    fn play(mut self, recording: &Recording, skill: &str) -> Self {
        // The editor answered the agent's requests for permission itself when this was recorded.
        let policy = policy(McpMode::Auto, CatalogIn::Prompt);
        let policy = Policy { approve: Approve::None, titles: Titles::Agent, ..policy };
        let mut proxy = Proxy::new(&policy, skill);
        for (number, (side, line)) in recording.lines.iter().enumerate() {
            let case = format!("{} with {skill}, line {}", recording.name, number + 1);
            let message: Value = serde_json::from_str(line).unwrap();
            if *side == Side::Client {
                if message["method"] == "initialize" {
                    proxy = Proxy::new(&policy, skill);
                }
                // The history of a session is all there once the client says the next thing.
                self.check_history(&case);
                self.hear_client(&message);
            }
            let seen = proxy.play(*side, line);
            if *side == Side::Agent {
                if message["method"] == "session/request_permission" && !seen.to_agent.is_empty() {
                    // For a tool of ours; the user is not asked.
                    let params = &message["params"];
                    let call = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
                    assert!(is_ours(&call["name"]), "{case}: {line}");
                    assert!(seen.to_client.is_empty(), "{case}: {:?}", seen.to_client);
                    continue;
                }
                assert!(seen.to_agent.is_empty(), "{case}");
                self.check(&case, line, &message, &seen.to_client);
            }
        }
        self.check_history(&recording.name);
        self
    }

    fn hear_client(&mut self, message: &Value) {
        match message["method"].as_str() {
            Some("session/prompt") => {
                let blocks = message["params"]["prompt"].as_array().unwrap();
                let texts = blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned);
                let text: String = texts.clone().collect();
                // Agents put what they like between two blocks.
                if !text.starts_with('/') {
                    self.blocks.extend(texts);
                }
                self.typed.push(text);
            }
            Some("session/load" | "session/resume") => {
                self.loading = Some(message["id"].clone());
                self.history.clear();
                self.replays = false;
            }
            _ => {}
        }
    }

    /// What the client sees of one line from the agent.
    fn check(&mut self, case: &str, line: &str, message: &Value, seen: &[String]) {
        // What is refused shows nothing.
        if message.get("error").is_some() && self.loading.as_ref() == Some(&message["id"]) {
            self.loading = None;
        }
        self.replays |= !user_blocks(message).is_empty();
        for line in seen {
            assert!(!OURS.iter().any(|word| line.contains(word)), "{case}: {line}");
            let update: Value = serde_json::from_str(line).unwrap();
            for block in user_blocks(&update) {
                self.history += block["text"].as_str().unwrap();
            }
        }
        if line.contains("\"MCP: acp-skills\"") || line.contains("\"name\":\"mcp__acp-skills__") {
            // Commands that an agent made of our prompts give way to ours; its own stay.
            let list = |line: &str| {
                let mut message: Value = serde_json::from_str(line).unwrap();
                message["params"]["update"]["availableCommands"]
                    .take()
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            };
            let is_reflection = |command: &Value| {
                command["_meta"]["sourceLabel"] == "MCP: acp-skills"
                    || command["name"].as_str().is_some_and(|name| name.starts_with("mcp__acp-skills__"))
            };
            let theirs: Vec<_> = list(line).into_iter().filter(|command| !is_reflection(command)).collect();
            for seen in seen {
                let seen = list(seen);
                assert!(seen.ends_with(&theirs) && !seen.iter().any(is_reflection), "{case}: {seen:?}");
            }
            return;
        }
        if !OURS.iter().any(|word| line.contains(word)) {
            let seen = seen.iter().filter(|seen| *seen == line || !is_menu_of_ours(seen, line));
            let restored: Vec<_> = seen.map(|seen| without_our_commands(line, seen)).collect();
            assert_eq!(restored, [line], "{case}");
            return;
        }
        if !user_blocks(message).is_empty() {
            self.chunks += 1;
            assert!(seen.len() <= 1, "{case}: {seen:?}");
            return;
        }
        if titles(&mut message.clone()).is_empty() {
            // Notifications of an agent's own that repeat a prompt: what is not ours stays.
            let mut expected = message.clone();
            without_ours(&mut expected);
            for line in seen {
                let mut seen: Value = serde_json::from_str(line).unwrap();
                without_ours(&mut seen);
                assert_eq!(seen, expected, "{case}");
            }
            return;
        }
        self.titles += 1;
        for line in seen {
            let seen: Value = serde_json::from_str(line).unwrap();
            let (mut before, mut after) = (message.clone(), seen.clone());
            for title in titles(&mut after) {
                let title = title.take();
                let words = title.as_str().unwrap_or_else(|| panic!("{case}: {line}"));
                let is_typed = |typed: &String| {
                    let flat = typed.split_whitespace().collect::<Vec<_>>().join(" ");
                    flat.starts_with(words) || words.is_empty()
                };
                assert!(!words.is_empty() && self.typed.iter().any(is_typed), "{case}: title {words:?}");
            }
            // A title goes or changes; everything else stays.
            for message in [&mut before, &mut after] {
                forget_titles(message);
                // Previews and the like.
                without_ours(message);
            }
            assert_eq!(after, before, "{case}");
        }
    }

    /// The replay holds each prompt as it was typed, in order.
    fn check_history(&mut self, case: &str) {
        if self.loading.take().is_none() || !self.replays {
            return;
        }
        // Some agents make one line of everything.
        let flat = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (mut history, mut blocks) = (self.history.clone(), self.blocks.clone());
        if !blocks.iter().all(|typed| history.contains(typed)) {
            (history, blocks) = (flat(&history), blocks.iter().map(flat).collect());
        }
        let mut rest = history.as_str();
        for typed in &blocks {
            let at = rest.find(typed.as_str());
            let at = at.unwrap_or_else(|| panic!("before {case}: no {typed:?} in {:?}", self.history));
            rest = &rest[at + typed.len()..];
        }
    }
}

/// What a message holds of what the user said.
fn user_blocks(message: &Value) -> &[Value] {
    let update = &message["params"]["update"];
    match update["sessionUpdate"].as_str() {
        Some("user_message_chunk") => std::slice::from_ref(&update["content"]),
        Some("user_message") => update["content"].as_array().unwrap(),
        _ => &[],
    }
}

/// The titles of sessions in a message.
fn titles(message: &mut Value) -> Vec<&mut Value> {
    if message["params"]["update"].get("title").is_some() {
        return message["params"]["update"].get_mut("title").into_iter().collect();
    }
    let sessions = message.pointer_mut("/result/sessions").and_then(Value::as_array_mut);
    sessions.into_iter().flatten().filter_map(|session| session.get_mut("title")).collect()
}

fn forget_titles(message: &mut Value) {
    let update = message.pointer_mut("/params/update").and_then(Value::as_object_mut);
    let sessions = update.is_none().then(|| message.pointer_mut("/result/sessions")).flatten();
    if let Some(sessions) = sessions.and_then(Value::as_array_mut) {
        for session in sessions.iter_mut().filter_map(Value::as_object_mut) {
            session.shift_remove("title");
        }
        return;
    }
    if let Some(update) = message.pointer_mut("/params/update").and_then(Value::as_object_mut) {
        update.shift_remove("title");
    }
}
