//! The tokens and the costs that agents report. Nothing is estimated.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The number of tokens that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// All tokens.
    pub total: u64,
    /// Tokens that the model read, if the agent reports them.
    pub input: Option<u64>,
    /// Tokens that the model wrote, if the agent reports them.
    pub output: Option<u64>,
}

/// The costs that an agent reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// The amount of money.
    pub amount: f64,
    /// The currency as a code of ISO 4217, such as `USD`.
    pub currency: String,
}

/// Reads a token count. The field names differ between agents.
pub(super) fn reported(usage: &Value) -> Option<Tokens> {
    let number = |names: &[&str]| names.iter().find_map(|name| usage[*name].as_u64());
    let input = number(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]);
    let output = number(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"]);
    let total = number(&["totalTokens", "total_tokens"]);
    // If there's no total, we need both parts to compute it.
    let total = total.or_else(|| Some(input? + output?))?;
    Some(Tokens { total, input, output })
}

/// Reads the costs of a session.
pub(super) fn cost(report: &Value) -> Option<Cost> {
    let amount = report["amount"].as_f64().filter(|amount| *amount >= 0.0)?;
    let currency = report["currency"].as_str().filter(|text| !text.is_empty() && text.len() <= 8)?;
    Some(Cost { amount, currency: currency.to_owned() })
}
