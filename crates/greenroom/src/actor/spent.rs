//! Where the time of a call went that ran out of it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where a call's time went, as far as is known where it ended. What is `None` did not happen, or nobody knows.
///
/// Its `Display` says it in words: `4.9 s queued behind chat_room/lobby.post, which has run for 12 s on node b`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Spent {
    /// The time that the call had from the moment it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
    /// Time for which no node could be found, as the directory was recovering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_node: Option<Duration>,
    /// Time in the actor's mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Duration>,
    /// What the actor did meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// Messages that waited before it.
    #[serde(skip_serializing_if = "is_zero")]
    pub ahead: u64,
    /// The node that it waited on, or was sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A turn that another one waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Behind {
    /// The actor, and the method if it is known: `chat_room/lobby.post`.
    pub turn: String,
    /// How long it has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Duration>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Spent {
    /// What is said after the words of an error: nothing if nothing is known.
    pub(crate) fn explained(&self) -> String {
        let text = self.to_string();
        if text.is_empty() { text } else { format!(": {text}") }
    }

    /// The time that the call had, for after `no reply`.
    pub(crate) fn within(&self) -> String {
        match self.limit {
            Some(limit) => format!("within {}", Seconds(limit)),
            None => "before the deadline".to_owned(),
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
        let mut parts = Vec::new();
        if let Some(no_node) = self.no_node {
            parts.push(format!("{} without a node, as the directory was recovering", Seconds(no_node)));
        }
        match (self.queued, &self.behind) {
            (Some(queued), Some(behind)) => {
                let ran = behind.running.map(|ran| format!(", which has run for {}", Seconds(ran))).unwrap_or_default();
                parts.push(format!("{} queued behind {}{ran}{on}", Seconds(queued), behind.turn));
            }
            (Some(queued), None) => parts.push(format!("{} queued{on}", Seconds(queued))),
            (None, Some(behind)) => parts.push(format!("{} still runs{on}", behind.turn)),
            (None, None) => {
                if let Some(node) = &self.node {
                    parts.push(format!("it was sent to node {node}, and had most likely begun there"));
                }
            }
        }
        if self.ahead > 0 {
            parts.push(format!("{} messages were before it", self.ahead));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A duration for people: two figures are enough.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        if seconds >= 9.95 {
            write!(f, "{seconds:.0} s")
        } else if self.0 >= Duration::from_secs(1) {
            let text = format!("{seconds:.1}");
            write!(f, "{} s", text.strip_suffix(".0").unwrap_or(&text))
        } else {
            write!(f, "{} ms", self.0.as_millis())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::error::{Doubt, Failure, Refusal};
    use greenroom_wire::codec::{self, Codec};

    fn queued() -> Spent {
        let behind = Behind { turn: "chat_room/lobby.post".into(), running: Some(Duration::from_secs(12)) };
        Spent {
            limit: Some(Duration::from_secs(5)),
            queued: Some(Duration::from_millis(4_910)),
            behind: Some(behind),
            node: Some("b".into()),
            ..Spent::default()
        }
    }

    #[test]
    fn an_error_says_where_the_time_went() {
        let text = Doubt::TimedOut(Box::new(queued())).to_string();
        let words = "no reply within 5 s: 4.9 s queued behind chat_room/lobby.post, which has run for 12 s on node b";
        assert_eq!(text, words);
        assert_eq!(Doubt::TimedOut(Box::default()).to_string(), "no reply before the deadline");
        assert!(Refusal::Expired(Box::new(queued())).to_string().contains("4.9 s queued behind chat_room/lobby.post"));
    }

    #[test]
    fn durations_are_short_for_people() {
        let text = |millis| Seconds(Duration::from_millis(millis)).to_string();
        assert_eq!([text(0), text(999), text(1_000), text(1_250)], ["0 ms", "999 ms", "1 s", "1.2 s"]);
        assert_eq!([text(12_000), text(9_960)], ["12 s", "10 s"]);
    }

    #[test]
    fn what_is_unknown_costs_no_byte_and_what_a_later_version_adds_is_skipped() {
        let encode = |failure: &Failure| {
            let mut out = bytes::BytesMut::new();
            codec::encode(Codec::Json, 1, failure, &mut out).unwrap();
            String::from_utf8(out[2..].to_vec()).unwrap()
        };
        assert_eq!(encode(&Refusal::Expired(Box::default()).into()), r#"{"Refused":{"Expired":{}}}"#);
        let newer = b"\x02\x01{\"Refused\":{\"Expired\":{\"ahead\":3,\"in_store\":7}}}";
        let spent = Spent { ahead: 3, ..Spent::default() };
        assert_eq!(codec::decode::<Failure>(newer), Ok(Refusal::Expired(Box::new(spent)).into()));
    }
}
