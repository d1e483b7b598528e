//! [`TurnInput`]: compactions of an agent that only reports how much input its model calls have read in a turn (Gemini).
//!
//! A conversation only grows until it is compacted, and each call of the model reads all of it. So each call of a later turn reads
//! at least as much as the average call of an earlier turn. If a whole turn has read less than half of that, the conversation was
//! compacted.

/// The minimum size of a conversation, in tokens. The instructions of an agent alone can have half of that.
const MIN_TOKENS: u64 = 30_000;

/// The input of the model in the turns of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnInput {
    /// A size that the conversation has reached since the last compaction, in tokens.
    reached: u64,
    /// The number of updates about tool calls in this turn. The model was called at most once more.
    updates: u64,
}

impl TurnInput {
    /// Notes an update about a tool call.
    pub(crate) fn call_updated(&mut self) {
        self.updates += 1;
    }

    /// Notes the end of a turn. `tokens` is the input of all calls of the model, or 0 if it is not known. Returns true if the
    /// conversation was compacted since the turn before.
    pub(crate) fn turn_over(&mut self, tokens: u64) -> bool {
        let calls = std::mem::take(&mut self.updates) + 1;
        if tokens == 0 {
            return false;
        }
        let is_compacted = self.reached >= MIN_TOKENS && tokens < self.reached / 2;
        if is_compacted {
            self.reached = 0;
        }
        self.reached = self.reached.max(tokens / calls);
        is_compacted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_with_less_input_than_the_conversation_had() {
        // Each turn: the updates about tool calls, and the input of all model calls.
        for (turns, expected) in [
            (&[(0, 100_000), (0, 40_000)][..], &[false, true][..]),
            (&[(0, 100_000), (0, 50_000)], &[false, false]),
            // The conversation is small.
            (&[(0, 29_999), (0, 10_000)], &[false, false]),
            // Four calls of the model with 50,000 tokens each, and then one.
            (&[(3, 200_000), (0, 51_000), (0, 20_000)], &[false, false, true]),
            // The turn after the compaction has several calls, so it is noticed later.
            (&[(0, 100_000), (4, 60_000), (0, 13_000)], &[false, false, true]),
            // Commands have no input, and a turn can fail before the first call.
            (&[(0, 100_000), (0, 0), (0, 101_000)], &[false, false, false]),
            (&[(0, 100_000), (0, 20_000), (0, 21_000), (0, 9_000)], &[false, true, false, false]),
        ] {
            let mut input = TurnInput::default();
            let over = |&(updates, tokens): &(u64, u64)| {
                (0..updates).for_each(|_| input.call_updated());
                input.turn_over(tokens)
            };
            assert_eq!(turns.iter().map(over).collect::<Vec<_>>(), expected, "{turns:?}");
        }
    }
}
