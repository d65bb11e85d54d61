//! The process that owns a range of reminders is killed: what is due meanwhile fires all the same.

use std::time::{Duration, Instant};

use crate::nodes::Nodes;

#[test]
fn every_reminder_due_while_its_owner_is_killed_fires() {
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
    // The actors are left alone until then: a call would wake them.
    while pending(&doors[0]) != Some(0) {
        assert!(
            killed.elapsed() < Duration::from_secs(60),
            "{:?} still to fire:\n{}",
            pending(&doors[0]),
            nodes.said()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut latest: f64 = 0.0;
    for alarm in 0..ALARMS {
        let answer = post(&doors[0], &format!("alarm/{alarm}/rings"), "{}").unwrap_or_default();
        let (rings, late): (u64, f64) =
            serde_json::from_str(&answer).unwrap_or_else(|error| panic!("alarm {alarm}: {error}: {answer}"));
        assert!(rings > 0, "alarm {alarm} has not rung:\n{}", nodes.said());
        latest = latest.max(late);
    }
    println!("{ALARMS} reminders, one of three owners killed: the latest came {latest:.1} s late");
}

/// The answer of a call that is answered as it should be.
fn post(door: &str, path: &str, body: &str) -> Option<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let request = ureq::Agent::from(config.build()).post(format!("http://{door}/{path}"));
    request.header("content-type", "application/json").send(body).ok()?.body_mut().read_to_string().ok()
}

/// Reminders that have not fired, as this door sees them.
fn pending(door: &str) -> Option<usize> {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let mut answer = ureq::Agent::from(config.build()).get(format!("http://{door}/-/reminders")).call().ok()?;
    let said: serde_json::Value = serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()?;
    Some(said["reminders"].as_array()?.len())
}

const ALARMS: u32 = 120;
