//! The process that owns a range of reminders is killed: what is due meanwhile fires all the same.

use std::time::{Duration, Instant};

use crate::nodes::Nodes;

#[test]
fn every_reminder_due_while_its_owner_is_killed_fires_within_15_seconds() {
    let mut nodes = Nodes::on_sqlite(3);
    let doors = nodes.doors();
    // So many that each process owns the ranges of some, and hosts some of the actors.
    for alarm in 0..ALARMS {
        let seconds = 2.0 + f64::from(alarm % 40) * 0.2;
        let body = format!("{{\"seconds\": {seconds}}}");
        let answer = post(&doors[alarm as usize % 3], &format!("alarm/{alarm}/set"), &body);
        assert!(answer.is_some(), "alarm {alarm} is set:\n{}", nodes.said());
    }
    nodes.kill(1);
    let killed = Instant::now();
    std::thread::sleep(Duration::from_secs(10));
    let mut latest: f64 = 0.0;
    for alarm in 0..ALARMS {
        loop {
            let answer = post(&doors[0], &format!("alarm/{alarm}/rings"), "{}");
            let rung: Option<(u64, f64)> = answer.and_then(|answer| serde_json::from_str(&answer).ok());
            if let Some((rings, late)) = rung
                && rings > 0
            {
                latest = latest.max(late);
                break;
            }
            assert!(killed.elapsed() < Duration::from_secs(40), "alarm {alarm} has not rung:\n{}", nodes.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    println!("{ALARMS} reminders, one of three owners killed: the latest came {latest:.1} s late");
    assert!(latest < 15.0, "the latest came {latest} s late:\n{}", nodes.said());
}

/// The answer of a call that is answered as it should be.
fn post(door: &str, path: &str, body: &str) -> Option<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let request = ureq::Agent::from(config.build()).post(format!("http://{door}/{path}"));
    request.header("content-type", "application/json").send(body).ok()?.body_mut().read_to_string().ok()
}

const ALARMS: u32 = 120;
