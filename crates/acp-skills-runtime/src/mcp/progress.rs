//! Progress notifications. While a call runs, a client that sent a progress token is notified every second, so that
//! it doesn't time out and can inform its user.
//!
//! [MCP: progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress)

use std::time::Duration;

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::time::{MissedTickBehavior, interval};

/// The time between two notifications.
const PERIOD: Duration = Duration::from_secs(1);

/// Sends notifications as long as it is polled, and never returns. The progress is the number of seconds since the
/// call started.
pub(super) async fn report(tool: &str, context: &RequestContext<RoleServer>) -> ! {
    if let Some(token) = context.meta.get_progress_token() {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Note that the first tick is immediate.
        let start = ticks.tick().await;
        loop {
            let elapsed = ticks.tick().await.duration_since(start);
            let mut progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64());
            progress.message = Some(format!("{tool} has been running for {} s", elapsed.as_secs()));
            if let Err(error) = context.peer.notify_progress(progress).await {
                // Only stop sending progress here. The client may still be able to receive the result.
                tracing::debug!(%error, "cannot send progress");
                break;
            }
        }
    }
    std::future::pending().await
}
