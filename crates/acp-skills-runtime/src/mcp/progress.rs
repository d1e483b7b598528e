//! Progress notifications. While a call runs, a client that sent a progress token is notified every second, so that
//! it doesn't time out and can inform its user. The progress that an MCP server behind a skill reports replaces these
//! notifications.
//!
//! [MCP: progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress)

use std::time::Duration;

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::{
    sync::mpsc::Receiver,
    time::{MissedTickBehavior, interval},
};

use acp_skills_servers::Progress;

/// The time between two notifications.
const PERIOD: Duration = Duration::from_secs(1);

/// Sends notifications as long as it is polled, and never returns. The progress is the number of seconds since the
/// call started, or what `server` receives. `server` is `None` if the client has sent no progress token.
pub(super) async fn report(
    tool: &str,
    context: &RequestContext<RoleServer>,
    server: Option<Receiver<Progress>>,
) -> ! {
    if let (Some(token), Some(mut server)) = (context.meta.get_progress_token(), server) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Note that the first tick is immediate.
        let start = ticks.tick().await;
        // Progress must increase, also if the server begins to report after a few seconds.
        let mut latest = 0.0;
        let mut is_reported = false;
        loop {
            let progress = tokio::select! {
                reported = server.recv() => {
                    let Some(reported) = reported else { std::future::pending().await };
                    is_reported = true;
                    let value = if reported.value > latest { reported.value } else { latest + 0.001 };
                    let mut progress = ProgressNotificationParam::new(token.clone(), value);
                    progress.total = reported.total.filter(|total| *total >= value);
                    progress.message = reported.message;
                    progress
                }
                now = ticks.tick(), if !is_reported => {
                    let elapsed = now.duration_since(start);
                    let mut progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64());
                    progress.message = Some(format!("{tool} has been running for {} s", elapsed.as_secs()));
                    progress
                }
            };
            latest = progress.progress;
            if let Err(error) = context.peer.notify_progress(progress).await {
                // Only stop sending progress here. The client may still be able to receive the result.
                tracing::debug!(%error, "cannot send progress");
                break;
            }
        }
    }
    std::future::pending().await
}
