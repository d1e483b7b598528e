//! Progress of a call that takes its time: while it runs, a client that gave a token hears of it every second, so that
//! it neither gives up nor leaves its user in the dark.
//!
//! [MCP: progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress)

use std::time::Duration;

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::time::{MissedTickBehavior, interval};

/// How often.
const PERIOD: Duration = Duration::from_secs(1);

/// Reports for as long as it is polled; never ends. The progress is the number of seconds since the call began.
pub(super) async fn report(tool: &str, context: &RequestContext<RoleServer>) -> ! {
    if let Some(token) = context.meta.get_progress_token() {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first is at once.
        let start = ticks.tick().await;
        loop {
            let elapsed = ticks.tick().await.duration_since(start);
            let mut progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64());
            progress.message = Some(format!("{tool} has been running for {} s", elapsed.as_secs()));
            if let Err(error) = context.peer.notify_progress(progress).await {
                // The result may still arrive.
                tracing::debug!(%error, "progress cannot be told");
                break;
            }
        }
    }
    std::future::pending().await
}
