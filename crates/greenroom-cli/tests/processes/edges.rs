//! What a client may ask of a real node that cannot be, and what it may ask twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bank::HANG;
use crate::nodes::Nodes;

/// A client of one door that tells a refusal as it came.
struct Client {
    door: String,
    agent: ureq::Agent,
}

struct Answer {
    status: u16,
    retry_after: bool,
    body: Value,
}

impl Client {
    fn new(door: String) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
        Self { door, agent: config.http_status_as_error(false).build().into() }
    }

    fn try_to(&self, path: &str, arguments: &Value, key: Option<&str>) -> Option<Answer> {
        let mut request = self.agent.post(format!("http://{}/wallet/{path}", self.door));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut answer = request.send(arguments.to_string()).ok()?;
        let body = answer.body_mut().read_to_string().ok()?;
        let retry_after = answer.headers().contains_key("retry-after");
        Some(Answer { status: answer.status().as_u16(), retry_after, body: serde_json::from_str(&body).ok()? })
    }

    /// What it answers, as soon as that is not that it cannot yet.
    fn post(&self, path: &str, arguments: &Value, key: Option<&str>) -> Answer {
        let begun = Instant::now();
        loop {
            if let Some(answer) = self.try_to(path, arguments, key).filter(|answer| answer.status < 500) {
                return answer;
            }
            assert!(begun.elapsed() < HANG, "{path} is not answered");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn look(&self, wallet: &str) -> Value {
        self.post(&format!("{wallet}/look"), &json!({}), None).body
    }
}

#[test]
fn a_key_that_cannot_be_is_refused_and_holds_up_nobody() {
    let _machine = crate::alone();
    let nodes = Nodes::with_journal(1);
    let client = Client::new(nodes.doors().remove(0));
    let long = [401, 859, 900, 1024, 1025].map(|len| "x".repeat(len));
    for key in ["%00", "a%0Ab"].into_iter().chain(long.iter().map(String::as_str)) {
        let Answer { status, retry_after, body } = client.post(&format!("{key}/look"), &json!({}), None);
        assert_eq!((status, retry_after), (400, false), "{key}: {body}");
    }
    assert_eq!(client.look("1")["balance"], 0, "its partition is there");
    for to in ["", "\0"].into_iter().chain(long.iter().map(String::as_str)) {
        let payment = json!({ "order": "lost", "to": to, "amount": 5 });
        // Its turn fails, and so it is 5xx, as any turn that has failed.
        let answer = client.try_to("1/pay", &payment, None).expect("it is answered");
        let said = answer.body["detail"].as_str().unwrap_or_default();
        assert!(answer.status != 200 && said.contains("the key does not name an actor"), "{to:?}: {}", answer.body);
    }
    assert_eq!(client.look("1")["balance"], 0, "nothing was done");
    let payment = json!({ "order": "made", "to": "2", "amount": 5 });
    assert_eq!(client.post("1/pay", &payment, Some("made")).body, json!(-5));
    let begun = Instant::now();
    while client.look("2")["balance"] != 5 {
        assert!(begun.elapsed() < HANG, "what follows does not arrive");
    }
}

#[test]
fn a_payment_is_answered_as_before_after_many_others_and_a_kill() {
    let _machine = crate::alone();
    let mut nodes = Nodes::with_journal(1);
    let client = Client::new(nodes.doors().remove(0));
    let payment = json!({ "order": "rent", "to": "2", "amount": 5 });
    let first = client.post("1/pay", &payment, Some("rent"));
    assert_eq!((first.status, first.body), (200, json!(-5)));
    for others in 0..OTHERS {
        let (wallet, key) = (others % 40, format!("other-{others}"));
        assert_eq!(client.post(&format!("{wallet}/thaw"), &json!({}), Some(&key)).status, 200);
    }
    client.post("1/pay", &json!({ "order": "food", "to": "2", "amount": 1 }), Some("food"));
    for killed in [false, true] {
        if killed {
            nodes.kill(0);
            nodes.all_ready();
        }
        let again = client.post("1/pay", &payment, Some("rent"));
        assert_eq!((again.status, again.body), (200, json!(-5)), "the first answer; killed: {killed}");
    }
    assert_eq!(client.look("1")["paid"], json!([["food", 1], ["rent", 1]]));
}

/// Far more calls than an actor's recent ones.
const OTHERS: u64 = 1000;
