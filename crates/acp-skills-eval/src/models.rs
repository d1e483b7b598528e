//! The models that an agent offers in a session, and setting one of them.
//!
//! Agents offer models in one of two ways: as `models` with `session/set_model`, or as an option in `configOptions` with
//! `session/set_config_option`.

use serde_json::{Value, json};

/// A model to set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The agent's identifier of the model.
    pub(super) model: String,
    /// The option's identifier. `None` if the agent offers the models without an option.
    option: Option<String>,
}

impl Choice {
    /// Returns the method of the request.
    pub(super) fn method(&self) -> &'static str {
        if self.option.is_some() { "session/set_config_option" } else { "session/set_model" }
    }

    /// Returns the parameters of the request.
    pub(super) fn params(&self, session: &Value) -> Value {
        match &self.option {
            Some(option) => json!({ "sessionId": session, "configId": option, "value": self.model }),
            None => json!({ "sessionId": session, "modelId": self.model }),
        }
    }
}

/// Returns the model that a new session uses, if the agent tells it.
pub(super) fn current(created: &Value) -> Option<String> {
    let model = created["models"]["currentModelId"].as_str();
    let of_option = || options(created).next()?.1["currentValue"].as_str();
    model.or_else(of_option).map(str::to_owned)
}

/// The reason that the model which the user names can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelError {
    #[error("agent does not let clients choose the model `{0}`")]
    NoChoice(String),
    #[error("several models fit `{wanted}`: choose one of {}", models.join(", "))]
    Several { wanted: String, models: Vec<String> },
    #[error("agent does not offer the model `{wanted}`: choose one of {}", models.join(", "))]
    Unknown { wanted: String, models: Vec<String> },
}

/// Finds the model that the user names: by its identifier, by its name, or by a part of one of them that fits no other model.
///
/// # Errors
/// Returns [`ModelError::NoChoice`] if the agent offers no models, [`ModelError::Several`] if a part fits several models, and
/// [`ModelError::Unknown`] if it fits none.
pub(super) fn choose(created: &Value, wanted: &str) -> Result<Choice, ModelError> {
    let mut offered = Vec::new();
    for model in created["models"]["availableModels"].as_array().into_iter().flatten() {
        offered.extend(entry(None, &model["modelId"], &model["name"]));
    }
    for (id, option) in options(created) {
        for value in option["options"].as_array().into_iter().flatten() {
            // Values can be in groups.
            let group = value["options"].as_array();
            let values: Vec<_> = group.map_or_else(|| vec![value], |group| group.iter().collect());
            offered.extend(
                values.into_iter().filter_map(|value| entry(Some(id), &value["value"], &value["name"])),
            );
        }
    }
    if offered.is_empty() {
        return Err(ModelError::NoChoice(wanted.to_owned()));
    }
    let lower = wanted.to_lowercase();
    let is_equal = |entry: &&Entry| entry.model == wanted;
    let has_name = |entry: &&Entry| entry.model.to_lowercase() == lower || entry.name.to_lowercase() == lower;
    let has_part = |entry: &&Entry| {
        entry.model.to_lowercase().contains(&lower) || entry.name.to_lowercase().contains(&lower)
    };
    let mut parts: Vec<_> = offered.iter().filter(has_part).collect();
    parts.dedup_by(|a, b| a.model == b.model);
    let only_part = || if let [only] = parts.as_slice() { Some(*only) } else { None };
    let found = offered.iter().find(is_equal).or_else(|| offered.iter().find(has_name)).or_else(only_part);
    if let Some(entry) = found {
        return Ok(Choice { model: entry.model.to_owned(), option: entry.option.map(str::to_owned) });
    }
    let mut models: Vec<_> = offered.iter().map(|entry| entry.model.to_owned()).collect();
    models.dedup();
    models.truncate(20);
    let wanted = wanted.to_owned();
    Err(if parts.len() > 1 {
        ModelError::Several { wanted, models }
    } else {
        ModelError::Unknown { wanted, models }
    })
}

/// A model that an agent offers.
struct Entry<'a> {
    option: Option<&'a str>,
    model: &'a str,
    name: &'a str,
}

fn entry<'a>(option: Option<&'a str>, model: &'a Value, name: &'a Value) -> Option<Entry<'a>> {
    Some(Entry { option, model: model.as_str()?, name: name.as_str().unwrap_or_default() })
}

/// Returns the options that set a model, with their identifiers.
fn options(created: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let options = created["configOptions"].as_array().into_iter().flatten();
    options.filter_map(|option| {
        let id = option["id"].as_str()?;
        (option["category"] == "model" || id == "model").then_some((id, option))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sessions have the forms that agents send.
    #[test]
    fn models_are_found_by_identifier_name_or_part() {
        let listed = json!({ "models": {
            "currentModelId": "gpt-4o",
            "availableModels": [
                { "modelId": "gpt-4o", "name": "GPT-4o" },
                { "modelId": "gpt-4o-mini", "name": "GPT-4o mini" },
                { "modelId": "claude-opus-5", "name": "Opus 5" },
            ],
        } });
        let optional = json!({ "configOptions": [
            { "id": "provider", "category": "model", "currentValue": "x", "options": [{ "value": "x", "name": "X" }] },
            { "id": "model", "category": "model", "currentValue": "a", "options": [
                { "group": "g", "options": [{ "value": "a", "name": "A" }, { "value": "haiku-4", "name": "Haiku" }] },
            ] },
            { "id": "mode", "category": "mode", "options": [{ "value": "opus", "name": "opus" }] },
        ] });
        for (created, wanted, found) in [
            (&listed, "gpt-4o", Ok(("gpt-4o", "session/set_model"))),
            (&listed, "opus", Ok(("claude-opus-5", "session/set_model"))),
            (&listed, "GPT-4o mini", Ok(("gpt-4o-mini", "session/set_model"))),
            (
                &listed,
                "gpt",
                Err("several models fit `gpt`: choose one of gpt-4o, gpt-4o-mini, claude-opus-5"),
            ),
            (&optional, "haiku", Ok(("haiku-4", "session/set_config_option"))),
            (&optional, "opus", Err("agent does not offer the model `opus`: choose one of x, a, haiku-4")),
            (&json!({}), "opus", Err("agent does not let clients choose the model `opus`")),
        ] {
            let choice = choose(created, wanted).map_err(|error| error.to_string());
            let seen = choice.as_ref().map(|choice| (choice.model.as_str(), choice.method()));
            assert_eq!(seen.map_err(String::as_str), found, "{wanted}");
        }
        assert_eq!(current(&listed).as_deref(), Some("gpt-4o"));
        assert_eq!(current(&optional).as_deref(), Some("x"));
    }
}
