//! What instances of a VLB state in different clusters send each other.

use std::collections::BTreeMap;

use greenroom_protocols::bcas::Change;
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::vlb::{LeaderEpoch, Note, Session, Snapshot, Submission, Version as LeaderVersion};
use serde::{Deserialize, Serialize};

use super::super::protocol::{Types, UpdateValue};
use super::sent::Sent;
use super::vlb::{Whole, told, whole};
use super::{open_change, seal_change};

/// A message from one instance to another.
#[derive(Serialize, Deserialize)]
pub(super) enum Message {
    Submit {
        leader: u64,
        epoch: u64,
        request: u64,
        first: u64,
        settled_under: u64,
        updates: Vec<serde_bytes::ByteBuf>,
        /// The last version that the sender has seen. Earlier programs do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<(u64, u64)>,
    },
    Answer {
        request: u64,
        latest: Latest,
        outcomes: Vec<(u64, Sent)>,
        /// The session that has asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
        /// Whether it counts only for one that has nothing of any leader.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        assumes: bool,
    },
    Notify(Latest),
    Collect(u64),
    Collected(u64, Latest),
}

/// A snapshot as bytes.
#[derive(Serialize, Deserialize)]
pub(super) struct Latest {
    epoch: u64,
    number: u64,
    #[serde(with = "serde_bytes")]
    state: Vec<u8>,
    applied: Vec<(u16, u64, u64)>,
    /// By cluster, the version at the last forgetting of sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    floors: Vec<(u16, u64, u64)>,
    /// The session that has it, if it was collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<u64>,
}

impl Message {
    pub(super) fn submit(submission: &Submission<Change<UpdateValue>>) -> Result<Self, String> {
        let updates = submission.updates.iter().map(|change| seal_change(change).map(|bytes| bytes.to_vec().into()));
        Ok(Self::Submit {
            leader: submission.epoch.0,
            epoch: submission.from.epoch,
            request: submission.request,
            first: submission.first,
            settled_under: submission.settled_under.0,
            updates: updates.collect::<Result<_, _>>()?,
            seen: Some((submission.seen.epoch.0, submission.seen.number)),
        })
    }

    pub(super) fn collected(types: Types, epoch: LeaderEpoch, by: u64, found: Snapshot<Whole>) -> Result<Self, String> {
        Ok(Self::Collected(epoch.0, Latest { by: Some(by), ..Latest::seal(types, found)? }))
    }

    /// What a leader says to the session `to` of a cluster.
    pub(super) fn note(types: Types, to: u64, note: Note<Whole>) -> Result<Self, String> {
        let assumes = matches!(note, Note::Assumed(..));
        Ok(match note {
            Note::Answer(request, latest, outcomes) | Note::Assumed(request, latest, outcomes) => {
                let outcomes = outcomes.into_iter().map(|(at, outcome)| Ok((at, Sent::seal(types, told(outcome))?)));
                let outcomes = outcomes.collect::<Result<_, String>>()?;
                Self::Answer { request, latest: Latest::seal(types, latest)?, outcomes, to: Some(to), assumes }
            }
            Note::Notify(latest) => Self::Notify(Latest::seal(types, latest)?),
            Note::Collect(epoch) => Self::Collect(epoch.0),
        })
    }

    /// What a leader says, or a participant to it.
    pub(super) fn open(self, types: Types, from: ClusterId) -> Result<Said, String> {
        Ok(match self {
            Self::Submit { leader, epoch, request, first, settled_under, updates, seen } => {
                let (seen_epoch, number) = seen.unwrap_or((u64::MAX, u64::MAX));
                let updates = updates.iter().map(|change| open_change(types, change));
                Said::Submission(Submission {
                    epoch: LeaderEpoch(leader),
                    from: Session { cluster: from, epoch },
                    request,
                    first,
                    settled_under: LeaderEpoch(settled_under),
                    seen: LeaderVersion { epoch: LeaderEpoch(seen_epoch), number },
                    updates: updates.collect::<Result<_, String>>()?,
                })
            }
            Self::Collected(epoch, latest) => {
                let by = Session { cluster: from, epoch: latest.by.unwrap_or(0) };
                Said::Collected(LeaderEpoch(epoch), by, latest.open(types)?)
            }
            Self::Answer { request, latest, outcomes, to, assumes } => {
                let outcomes = outcomes.into_iter().map(|(at, sent)| Ok((at, whole(sent.open(types)?))));
                let (latest, outcomes) = (latest.open(types)?, outcomes.collect::<Result<_, String>>()?);
                let note = if assumes { Note::Assumed } else { Note::Answer };
                Said::Note(to, note(request, latest, outcomes))
            }
            Self::Notify(latest) => Said::Note(None, Note::Notify(latest.open(types)?)),
            Self::Collect(epoch) => Said::Note(None, Note::Collect(LeaderEpoch(epoch))),
        })
    }
}

/// A message, read.
pub(super) enum Said {
    Submission(Submission<Change<UpdateValue>>),
    /// To which leader, by whom, and what.
    Collected(LeaderEpoch, Session, Snapshot<Whole>),
    /// To which session, if that is said.
    Note(Option<u64>, Note<Whole>),
}

impl Latest {
    pub(super) fn seal(types: Types, snapshot: Snapshot<Whole>) -> Result<Self, String> {
        let applied = snapshot.applied.iter().map(|(session, last)| (session.cluster.0, session.epoch, *last));
        let floors = snapshot.floors.iter().map(|(cluster, at)| (cluster.0, at.epoch.0, at.number));
        Ok(Self {
            epoch: snapshot.version.epoch.0,
            number: snapshot.version.number,
            state: types.encode_state(&snapshot.state.0)?.into(),
            applied: applied.collect(),
            floors: floors.collect(),
            by: None,
        })
    }

    fn open(self, types: Types) -> Result<Snapshot<Whole>, String> {
        let session = |cluster, epoch| Session { cluster: ClusterId(cluster), epoch };
        let applied: BTreeMap<Session, u64> =
            self.applied.into_iter().map(|(cluster, epoch, last)| (session(cluster, epoch), last)).collect();
        let version = |epoch, number| LeaderVersion { epoch: LeaderEpoch(epoch), number };
        let floors =
            self.floors.into_iter().map(|(cluster, epoch, number)| (ClusterId(cluster), version(epoch, number)));
        Ok(Snapshot {
            version: version(self.epoch, self.number),
            floors: floors.collect(),
            state: Whole((types.decode_state)(&self.state)?),
            applied,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{open, seal};
    use super::*;

    fn latest() -> Latest {
        Latest { epoch: 2, number: 5, state: vec![1], applied: vec![(1, 7, 4)], floors: Vec::new(), by: None }
    }

    fn keeps_its_form(message: &Message, golden: &[u8]) {
        let bytes = seal(1, message).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), golden.escape_ascii().to_string());
        assert!(open::<Message>(golden).is_ok());
        for end in 0..golden.len() {
            assert!(open::<Message>(&golden[..end]).is_err(), "{end}");
        }
    }

    fn submit(seen: Option<(u64, u64)>) -> Message {
        let updates = vec![vec![5].into()];
        Message::Submit { leader: 2, epoch: 7, request: 3, first: 4, settled_under: 1, updates, seen }
    }

    fn answer(to: Option<u64>, assumes: bool) -> Message {
        Message::Answer { request: 3, latest: latest(), outcomes: vec![(4, Sent::Confirmed)], to, assumes }
    }

    #[test]
    fn messages_keep_their_form() {
        keeps_its_form(&submit(Some((2, 4))), SUBMIT_SEEN);
        keeps_its_form(&answer(Some(7), true), ANSWER_TO);
        keeps_its_form(&Message::Notify(latest()), NOTIFY);
        keeps_its_form(&Message::Collect(2), COLLECT);
        let collected = Latest { floors: vec![(1, 2, 3)], by: Some(7), ..latest() };
        keeps_its_form(&Message::Collected(2, collected), COLLECTED_BY);
    }

    #[test]
    fn messages_of_earlier_programs_are_read() {
        keeps_its_form(&submit(None), SUBMIT);
        keeps_its_form(&answer(None, false), ANSWER);
        keeps_its_form(&Message::Collected(2, latest()), COLLECTED);
    }

    const SUBMIT: &[u8] = b"\x01\x01\x81\xa6Submit\x86\xa6leader\x02\xa5epoch\x07\xa7request\x03\xa5first\x04\
        \xadsettled_under\x01\xa7updates\x91\xc4\x01\x05";
    const ANSWER: &[u8] =
        b"\x01\x01\x81\xa6Answer\x83\xa7request\x03\xa6latest\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04\xa8outcomes\x91\x92\x04\xa9Confirmed";
    const SUBMIT_SEEN: &[u8] = b"\x01\x01\x81\xa6Submit\x87\xa6leader\x02\xa5epoch\x07\xa7request\x03\xa5first\x04\
        \xadsettled_under\x01\xa7updates\x91\xc4\x01\x05\xa4seen\x92\x02\x04";
    const ANSWER_TO: &[u8] =
        b"\x01\x01\x81\xa6Answer\x85\xa7request\x03\xa6latest\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04\xa8outcomes\x91\x92\x04\xa9Confirmed\xa2to\x07\xa7assumes\xc3";
    const COLLECTED_BY: &[u8] =
        b"\x01\x01\x81\xa9Collected\x92\x02\x86\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04\xa6floors\x91\x93\x01\x02\x03\xa2by\x07";
    const NOTIFY: &[u8] = b"\x01\x01\x81\xa6Notify\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04";
    const COLLECT: &[u8] = b"\x01\x01\x81\xa7Collect\x02";
    const COLLECTED: &[u8] = b"\x01\x01\x81\xa9Collected\x92\x02\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04";
}
