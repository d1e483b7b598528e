use super::*;

#[tokio::test]
async fn progress_that_nobody_reads_is_not_kept() {
    let (rpc, mut outgoing) = Rpc::new(Box::new(Ignored), CancellationToken::new());
    let (progress, mut received) = progress_channel();
    let limit = Duration::from_mins(1);
    let params = json!({});
    let ask = Ask { method: "tools/call", params, limit, what: "answer", progress: Some(progress) };
    let server = async {
        let request = outgoing.recv().await.unwrap().request.unwrap();
        for value in 0..10_000 {
            let params = json!({ "progressToken": request, "progress": value });
            let line = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            rpc.receive(line.to_string().as_bytes());
        }
        rpc.answered(request, Ok(json!("done")));
    };
    let (answer, ()) = tokio::join!(rpc.ask(ask), server);
    assert_eq!(answer, Ok(json!("done")));
    let mut count = 0;
    while received.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, 64);
}

/// A server can report progress for ever, also for requests for which it has no token.
#[tokio::test(start_paused = true)]
async fn progress_does_not_extend_a_request_for_ever() {
    let limit = Duration::from_secs(5);
    for (method, longest) in
        [("initialize", limit), ("resources/read", limit), ("tools/call", limit * MAX_CALLS)]
    {
        let (rpc, mut outgoing) = Rpc::new(Box::new(Ignored), CancellationToken::new());
        let ask = Ask { method, params: json!({}), limit, what: "answer", progress: None };
        let started = Instant::now();
        let server = async {
            let request = outgoing.recv().await.unwrap().request.unwrap();
            let params = json!({ "progressToken": request, "progress": 1 });
            let line = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            loop {
                tokio::time::sleep(limit / 2).await;
                rpc.receive(line.to_string().as_bytes());
            }
        };
        tokio::select! {
            answer = rpc.ask(ask) => assert_eq!(answer, Err(ServerError::Timeout { what: "answer", limit })),
            () = server => {}
        }
        let took = started.elapsed();
        assert!(took + limit >= longest && took <= longest, "{method}: {took:?}");
    }
}

/// Parsed JSON needs much more memory than its text.
#[tokio::test]
async fn an_answer_with_too_many_values_fails() {
    let (rpc, mut outgoing) = Rpc::new(Box::new(Ignored), CancellationToken::new());
    let limit = Duration::from_mins(1);
    let ask = || Ask { method: "x", params: json!({}), limit, what: "answer", progress: None };
    let values = format!("[1{}]", ",1".repeat(MAX_VALUES));
    let long = format!(r#""{}""#, "[,{".repeat(MAX_VALUES));
    for (result, is_refused) in [(&values, true), (&long, false)] {
        let server = async {
            let id = outgoing.recv().await.unwrap().request.unwrap();
            // A request of the server can have the same id.
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x","params":{result}}}"#);
            rpc.receive(request.as_bytes());
            rpc.receive(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).as_bytes());
        };
        let (answer, ()) = tokio::join!(rpc.ask(ask()), server);
        let refusal = Err(ServerError::Invalid("it contains too many values"));
        assert_eq!(answer == refusal, is_refused);
        assert_eq!(answer.is_ok(), !is_refused);
        while outgoing.try_recv().is_ok() {}
    }
}

/// An answer repeats the id, and a server that does not read its answers must not fill the memory with them.
#[tokio::test]
async fn a_request_with_a_long_id_gets_no_answer() {
    let (rpc, mut outgoing) = Rpc::new(Box::new(Ignored), CancellationToken::new());
    let long = "x".repeat(MAX_ID + 1);
    for (id, is_answered) in [
        (json!(7), true),
        (json!(1.5), true),
        (json!(long[1..]), true),
        (json!(long), false),
        (json!([long]), false),
        (json!({ "id": long }), false),
    ] {
        rpc.receive(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string().as_bytes());
        let answer = outgoing.try_recv().ok();
        assert_eq!(answer.is_some(), is_answered, "{id}");
        let answered = answer.map(|answer| serde_json::from_slice::<Value>(&answer.line).unwrap());
        assert!(answered.is_none_or(|answer| answer["id"] == id));
    }
}
