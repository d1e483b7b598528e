//! [`Stderr`]: the last lines that a server writes to its standard error. They explain why it has ended.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use skills_core::text::shown;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::hidden::Hidden;

/// The maximum number of bytes to keep.
const MAX_BYTES: usize = 8 * 1024;
/// The maximum number of lines to show.
const MAX_LINES: usize = 5;
/// The maximum number of characters to show.
const MAX_CHARS: usize = 500;
/// The time to wait for the end of the output, because a child of the server can keep it open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The last lines of a server's standard error. Secrets are hidden in them.
#[derive(Debug)]
pub(super) struct Stderr {
    /// Guards the last bytes, and true if there were more before them. No other lock is taken while it is held.
    tail: Arc<Mutex<(Vec<u8>, bool)>>,
    /// Cancelled at the end of the output.
    end: CancellationToken,
    /// The values that are not shown.
    hidden: Arc<Hidden>,
}

impl Stderr {
    /// Reads a stream to its end in the background. `hidden` are values that are not shown.
    pub(super) fn read(mut stream: impl AsyncRead + Unpin + Send + 'static, hidden: Arc<Hidden>) -> Self {
        let tail = Arc::<Mutex<(Vec<u8>, bool)>>::default();
        let end = CancellationToken::new();
        let kept = Arc::clone(&tail);
        let guard = end.clone().drop_guard();
        tokio::spawn(async move {
            let _guard = guard;
            let mut chunk = vec![0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                let (bytes, is_cut) = &mut *kept.lock();
                bytes.extend_from_slice(&chunk[..count]);
                let excess = bytes.len().saturating_sub(MAX_BYTES);
                bytes.drain(..excess);
                *is_cut |= excess > 0;
            }
        });
        Self { tail, end, hidden }
    }

    /// Returns the last lines, or `None` if there are none.
    pub(super) async fn last_lines(&self) -> Option<String> {
        // The rest is missing if the output is still open.
        let _ = timeout(DRAIN_TIMEOUT, self.end.cancelled()).await;
        let (bytes, is_cut) = &*self.tail.lock();
        last_lines(&String::from_utf8_lossy(bytes), *is_cut, &self.hidden)
    }
}

/// Returns the last lines of `text`. If the beginning of the text is missing, its first line is left out, because it can contain the
/// rest of a secret.
fn last_lines(text: &str, is_cut: bool, hidden: &Hidden) -> Option<String> {
    let text = if is_cut { text.split_once('\n')?.1 } else { text };
    let text = hidden.hide(text.to_owned());
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(MAX_LINES)..].join(" / ");
    let excess = last.chars().count().saturating_sub(MAX_CHARS);
    let last: String = last.chars().skip(excess).collect();
    (!last.is_empty()).then(|| shown(&last).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Resolved;

    #[test]
    fn last_lines_are_bounded_and_hide_secrets() {
        let env = Resolved {
            values: vec![("A".into(), "Bearer abc".into()), ("B".into(), "1".into())],
            secrets: vec!["abc".into(), "first line\nsecond line\n".into()],
        };
        let hidden = Hidden::of(&env);
        assert!(!format!("{hidden:?}").contains("abc"));
        for (text, is_cut, expected) in [
            ("", false, None),
            (" \n\n", false, None),
            ("a\nb\n", false, Some("a / b")),
            ("1\n2\n3\n4\n5\n6\n", false, Some("2 / 3 / 4 / 5 / 6")),
            // The first line can contain the rest of a secret.
            ("bc\nb\n", true, Some("b")),
            ("bc", true, None),
            ("sent Bearer abc, abc and 1", false, Some("sent ***, *** and 1")),
            ("x second line", false, Some("x ***")),
            ("\u{1b}[31mred", false, Some("\\u{1b}[31mred")),
        ] {
            assert_eq!(last_lines(text, is_cut, &hidden).as_deref(), expected, "{text:?}");
        }
        let long = "x".repeat(10_000);
        assert_eq!(last_lines(&long, false, &hidden).unwrap().len(), MAX_CHARS);
    }

    #[tokio::test]
    async fn only_the_end_of_a_flood_is_kept() {
        let text = format!("{}\nlast\n", "x".repeat(1 << 20));
        let stderr = Stderr::read(std::io::Cursor::new(text.into_bytes()), Arc::default());
        assert_eq!(stderr.last_lines().await.as_deref(), Some("last"));
        assert!(stderr.tail.lock().0.len() <= MAX_BYTES);
    }
}
