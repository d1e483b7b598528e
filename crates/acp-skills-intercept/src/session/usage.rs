//! [`Usage`]: falls of the context usage that an agent reports with `usage_update`.
//!
//! A fall by more than half means that the conversation was compacted, unless the conversation is small. Some agents also report
//! the usage of a subagent or of a side request. Their next report jumps back, and the fall does not count. A report of 0 is
//! ignored, because agents send it after a failed request.

/// The context usage of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// The last `used` and `size`, in tokens.
    last: Option<(u64, u64)>,
    /// The usage before the first fall that is not settled: the loss was not restored, and no other signal has confirmed it.
    before_fall: Option<u64>,
    /// True if another signal has announced a compaction, so that the next fall belongs to it.
    expects_fall: bool,
    /// The user's command for a compaction. An agent may complete it after it was cancelled, and then the usage is smaller.
    command: Command,
}

/// The state of the user's command for a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Command {
    #[default]
    None,
    Running,
    /// The usage has become smaller while the command was running.
    Shrunk,
    /// The turn of the command was cancelled. The next report tells if the agent has completed it.
    Cancelled,
}

/// The meaning of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageChange {
    /// The usage has fallen as after a compaction.
    Fell,
    /// The usage is back, so the last fall was no compaction.
    Recovered,
    /// No change of interest.
    Nothing,
}

impl Usage {
    /// Reads a report.
    pub(crate) fn report(&mut self, used: u64, size: u64) -> UsageChange {
        if used == 0 {
            return UsageChange::Nothing;
        }
        let Some((before, size)) = self.last.replace((used, size)) else { return UsageChange::Nothing };
        if let Some(high) = self.before_fall
            && before < high / 2
            && used >= high - high / 10
        {
            self.before_fall = None;
            return UsageChange::Recovered;
        }
        match self.command {
            Command::Running if used < before => self.command = Command::Shrunk,
            Command::Cancelled => {
                self.command = Command::None;
                if used < before {
                    return UsageChange::Fell;
                }
            }
            _ => {}
        }
        // If the agent doesn't report a size, we can't tell if the conversation is small.
        let is_small = size == 0 || before < size / 5;
        if is_small || !has_fallen(before, used) {
            return UsageChange::Nothing;
        }
        if std::mem::take(&mut self.expects_fall) {
            return UsageChange::Nothing;
        }
        self.before_fall.get_or_insert(before);
        UsageChange::Fell
    }

    /// Notes that reports without a fall have passed, and the last one was `used`.
    pub(crate) fn passed(&mut self, used: u64) {
        if let Some((last, _)) = &mut self.last {
            *last = used;
        }
    }

    /// Returns true if the next report has to be read even if the usage has not fallen.
    pub(crate) fn must_be_read(&self) -> bool {
        self.before_fall.is_some() || self.command != Command::None
    }

    /// Notes a compaction that was announced by another signal.
    pub(crate) fn announced(&mut self) {
        // If the fall came first, it is settled now.
        self.expects_fall = self.before_fall.take().is_none();
    }

    /// Notes that a prompt is sent. `in_command` is true if the user's command for a compaction runs. Later reports don't tell about a
    /// command that ended before.
    pub(crate) fn prompt_sent(&mut self, in_command: bool) {
        self.command = match self.command {
            Command::Shrunk if in_command => Command::Shrunk,
            _ if in_command => Command::Running,
            _ => Command::None,
        };
    }

    /// Notes the end of the command. Returns true if the usage has become smaller.
    pub(crate) fn command_over(&mut self, is_cancelled: bool) -> bool {
        let before = std::mem::take(&mut self.command);
        if is_cancelled && before == Command::Running {
            self.command = Command::Cancelled;
        }
        before == Command::Shrunk
    }

    /// Stops expecting a fall.
    pub(crate) fn turn_over(&mut self) {
        self.expects_fall = false;
    }

    /// Forgets the last fall, because the loss was restored, or because the fall is history.
    pub(crate) fn settled(&mut self) {
        self.before_fall = None;
    }

    /// Starts again, because the agent opens the session again. Its first fall may compare with a report of the history.
    pub(crate) fn reopened(&mut self) {
        *self = Self { expects_fall: true, ..Self::default() };
    }
}

/// Returns true if the usage has fallen by more than half.
pub(crate) fn has_fallen(before: u64, used: u64) -> bool {
    used < before.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::{
        UsageChange::{Fell, Nothing, Recovered},
        *,
    };

    /// Returns the meaning of each of these reports, for a context of 100 tokens.
    fn read(reports: &[u64]) -> Vec<UsageChange> {
        let mut usage = Usage::default();
        reports.iter().map(|&used| usage.report(used, 100)).collect()
    }

    #[test]
    fn falls_are_noticed() {
        for (reports, expected) in [
            (&[80, 20][..], &[Nothing, Fell][..]),
            (&[80, 39], &[Nothing, Fell]),
            (&[81, 40], &[Nothing, Fell]),
            (&[80, 1], &[Nothing, Fell]),
            // 0 is no report.
            (&[80, 0, 81, 20], &[Nothing, Nothing, Nothing, Fell]),
            // By half or less, or step by step.
            (&[80, 40], &[Nothing, Nothing]),
            (&[80, 60, 40, 30], &[Nothing; 4]),
            // The conversation is small.
            (&[19, 1], &[Nothing, Nothing]),
            (&[20, 9], &[Nothing, Fell]),
            (&[1, 80], &[Nothing, Nothing]),
            // The usage of a subagent.
            (&[80, 5, 81], &[Nothing, Fell, Recovered]),
            (&[80, 5, 8, 12, 72], &[Nothing, Fell, Nothing, Nothing, Recovered]),
            // The work goes on after a compaction.
            (&[80, 20, 35, 50, 70, 90], &[Nothing, Fell, Nothing, Nothing, Nothing, Nothing]),
            (&[80, 20, 71], &[Nothing, Fell, Nothing]),
            // Two compactions without a prompt between them.
            (&[90, 40, 10], &[Nothing, Fell, Fell]),
            (&[u64::MAX, 1, u64::MAX], &[Nothing, Fell, Recovered]),
        ] {
            assert_eq!(read(reports), expected, "{reports:?}");
        }
        let mut usage = Usage::default();
        assert_eq!([usage.report(80, 0), usage.report(1, 0)], [Nothing, Nothing], "the size is unknown");
        // The size before the fall counts, because a smaller model may have been chosen.
        let mut usage = Usage::default();
        assert_eq!([usage.report(80, 1000), usage.report(1, 100)], [Nothing, Nothing]);
    }

    #[test]
    fn a_fall_after_another_signal_does_not_count() {
        let mut usage = Usage::default();
        usage.report(80, 100);
        usage.announced();
        assert_eq!(
            [usage.report(20, 100), usage.report(80, 100), usage.report(20, 100)],
            [Nothing, Nothing, Fell]
        );
        // The fall came first.
        usage.announced();
        assert!(!usage.must_be_read());
        assert_eq!([usage.report(80, 100), usage.report(20, 100)], [Nothing, Fell]);
        // The agent reports no fall for the compaction, and it is long ago.
        usage.settled();
        usage.announced();
        usage.turn_over();
        assert_eq!([usage.report(80, 100), usage.report(20, 100)], [Nothing, Fell]);
    }

    #[test]
    fn any_fall_counts_after_a_cancelled_command() {
        for (next, expected) in [(10, Nothing), (11, Nothing), (0, Nothing), (9, Fell)] {
            let mut usage = Usage::default();
            usage.report(10, 100);
            usage.prompt_sent(true);
            assert!(!usage.command_over(true) && usage.must_be_read());
            assert_eq!(usage.report(next, 100), expected, "{next}");
            // Only the first report counts.
            assert_eq!(usage.report(8, 100), if next == 0 { Fell } else { Nothing }, "{next}");
            assert!(!usage.must_be_read());
        }
        let mut usage = Usage::default();
        usage.report(10, 100);
        usage.prompt_sent(true);
        usage.command_over(true);
        usage.prompt_sent(false);
        assert_eq!(usage.report(9, 100), Nothing);
    }

    #[test]
    fn any_fall_counts_while_a_command_runs() {
        for (reports, expected) in
            [(&[][..], false), (&[10], false), (&[11], false), (&[0], false), (&[9], true), (&[9, 12], true)]
        {
            let mut usage = Usage::default();
            usage.report(10, 100);
            usage.prompt_sent(true);
            assert!(usage.must_be_read());
            for &used in reports {
                assert_eq!(usage.report(used, 100), Nothing);
            }
            assert_eq!(usage.command_over(false), expected, "{reports:?}");
            assert!(!usage.must_be_read());
        }
    }

    #[test]
    fn a_replay_is_no_fall() {
        let mut usage = Usage::default();
        usage.report(80, 100);
        usage.reopened();
        assert_eq!([usage.report(90, 100), usage.report(20, 100)], [Nothing, Nothing]);
    }
}
