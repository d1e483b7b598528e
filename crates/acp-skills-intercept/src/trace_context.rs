//! [`TraceContext`]: the trace that a request belongs to.
//!
//! ACP and MCP reserve the keys `traceparent` and `tracestate` in `_meta` for the
//! [W3C trace context](https://www.w3.org/TR/trace-context/). When a request contains these keys, they are forwarded unchanged, and used
//! as the parent for spans of the proxy.

use acp_skills_wire::Message;

/// The maximum length of `tracestate`.
const MAX_STATE: usize = 512;

/// A trace context from the client or the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the trace.
    pub trace: [u8; 16],
    /// The id of the parent span.
    pub parent: [u8; 8],
    /// True if the trace is sampled by the sender.
    pub is_sampled: bool,
    /// The value of `tracestate`, or an empty string.
    pub state: String,
}

impl TraceContext {
    /// Parses a `traceparent` and an optional `tracestate`. Any version is supported, and an invalid `tracestate` is ignored.
    ///
    /// Returns `None` if the `traceparent` is invalid.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut fields = parent.split('-');
        let [version] = bytes(fields.next()?)?;
        let trace = bytes(fields.next()?)?;
        let parent = bytes(fields.next()?)?;
        let [flags] = bytes(fields.next()?)?;
        let is_complete = version > 0 || fields.next().is_none();
        let is_known = version != 0xff && is_complete && trace != [0; 16] && parent != [0; 8];
        let state = state.filter(|state| {
            state.len() <= MAX_STATE && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        });
        is_known.then(|| Self {
            trace,
            parent,
            is_sampled: flags & 1 == 1,
            state: state.unwrap_or_default().to_owned(),
        })
    }

    /// Returns the trace context from the `_meta` of a request.
    pub(crate) fn of(request: &Message<'_>) -> Option<Box<Self>> {
        let meta = request.param(&["_meta"])?;
        let parent = meta.str("traceparent")?;
        Self::parse(&parent, meta.str("tracestate").as_deref()).map(Box::new)
    }
}

/// Parses an array of bytes in lowercase hexadecimal.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_hex = text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hex || text.len() != 2 * N {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = digits.iter().fold(0, |byte, digit| {
            let value = if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
            byte << 4 | value
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "80e1afed08e019fc1110464cfa66635c";

    #[test]
    fn contexts_of_all_versions() {
        for (text, expected) in [
            (format!("00-{TRACE}-7a085853722dc6d2-01"), Some(true)),
            (format!("00-{TRACE}-7a085853722dc6d2-00"), Some(false)),
            (format!("00-{TRACE}-7a085853722dc6d2-03"), Some(true)),
            (format!("cc-{TRACE}-7a085853722dc6d2-01-what-the-future-adds"), Some(true)),
            (format!("00-{TRACE}-7a085853722dc6d2-01-more"), None),
            (format!("ff-{TRACE}-7a085853722dc6d2-01"), None),
            (format!("00-{}-7a085853722dc6d2-01", TRACE.to_uppercase()), None),
            (format!("00-{TRACE}0-7a085853722dc6d2-01"), None),
            (format!("00-{TRACE}-7a085853722dc6d2"), None),
            (format!("00-{TRACE}-0000000000000000-01"), None),
            (format!("00-{}-7a085853722dc6d2-01", "0".repeat(32)), None),
            ("00".to_owned(), None),
            (String::new(), None),
            (format!("00-{}-7a085853722dc6d2-01", "ä".repeat(16)), None),
        ] {
            let found = TraceContext::parse(&text, None);
            assert_eq!(found.as_ref().map(|context| context.is_sampled), expected, "{text}");
            if let Some(context) = found {
                assert_eq!((context.trace[0], context.trace[15]), (0x80, 0x5c));
                assert_eq!(context.parent, [0x7a, 8, 0x58, 0x53, 0x72, 0x2d, 0xc6, 0xd2]);
            }
        }
    }

    #[test]
    fn states_that_are_not_valid_are_left_out() {
        let parent = format!("00-{TRACE}-7a085853722dc6d2-01");
        for (state, expected) in [("a=1,b=2", "a=1,b=2"), ("a=\n", ""), (&*"a".repeat(513), ""), ("ä=1", "")]
        {
            let context = TraceContext::parse(&parent, Some(state)).expect("a context");
            assert_eq!(context.state, expected);
        }
    }

    #[test]
    fn the_context_is_read_from_the_metadata_of_a_request() {
        for (meta, expected) in [
            (format!(r#"{{"traceparent":"00-{TRACE}-7a085853722dc6d2-01","tracestate":"a=1"}}"#), true),
            (format!(r#"{{"otel":{{"traceparent":"00-{TRACE}-7a085853722dc6d2-01"}}}}"#), false),
            (r#"{"traceparent":1}"#.to_owned(), false),
            ("null".to_owned(), false),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{meta}}}}}"#);
            let message = Message::parse(line.as_bytes()).expect("a message");
            let found = TraceContext::of(&message);
            assert_eq!(found.is_some_and(|context| context.state == "a=1"), expected, "{meta}");
        }
    }
}
