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
    Submit { leader: u64, epoch: u64, request: u64, first: u64, settled_under: u64, updates: Vec<serde_bytes::ByteBuf> },
    Answer { request: u64, latest: Latest, outcomes: Vec<(u64, Sent)> },
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
        })
    }

    pub(super) fn collected(types: Types, epoch: LeaderEpoch, found: Snapshot<Whole>) -> Result<Self, String> {
        Ok(Self::Collected(epoch.0, Latest::seal(types, found)?))
    }

    pub(super) fn note(types: Types, note: Note<Whole>) -> Result<Self, String> {
        Ok(match note {
            Note::Answer(request, latest, outcomes) => {
                let outcomes = outcomes.into_iter().map(|(at, outcome)| Ok((at, Sent::seal(types, told(outcome))?)));
                let outcomes = outcomes.collect::<Result<_, String>>()?;
                Self::Answer { request, latest: Latest::seal(types, latest)?, outcomes }
            }
            Note::Notify(latest) => Self::Notify(Latest::seal(types, latest)?),
            Note::Collect(epoch) => Self::Collect(epoch.0),
        })
    }

    /// What a leader says, or a participant to it.
    pub(super) fn open(self, types: Types, from: ClusterId) -> Result<Said, String> {
        Ok(match self {
            Self::Submit { leader, epoch, request, first, settled_under, updates } => {
                let updates = updates.iter().map(|change| open_change(types, change));
                Said::Submission(Submission {
                    epoch: LeaderEpoch(leader),
                    from: Session { cluster: from, epoch },
                    request,
                    first,
                    settled_under: LeaderEpoch(settled_under),
                    updates: updates.collect::<Result<_, String>>()?,
                })
            }
            Self::Collected(epoch, latest) => Said::Collected(LeaderEpoch(epoch), latest.open(types)?),
            Self::Answer { request, latest, outcomes } => {
                let outcomes = outcomes.into_iter().map(|(at, sent)| Ok((at, whole(sent.open(types)?))));
                Said::Note(Note::Answer(request, latest.open(types)?, outcomes.collect::<Result<_, String>>()?))
            }
            Self::Notify(latest) => Said::Note(Note::Notify(latest.open(types)?)),
            Self::Collect(epoch) => Said::Note(Note::Collect(LeaderEpoch(epoch))),
        })
    }
}

/// A message, read.
pub(super) enum Said {
    Submission(Submission<Change<UpdateValue>>),
    Collected(LeaderEpoch, Snapshot<Whole>),
    Note(Note<Whole>),
}

impl Latest {
    pub(super) fn seal(types: Types, snapshot: Snapshot<Whole>) -> Result<Self, String> {
        let applied = snapshot.applied.iter().map(|(session, last)| (session.cluster.0, session.epoch, *last));
        Ok(Self {
            epoch: snapshot.version.epoch.0,
            number: snapshot.version.number,
            state: (types.encode_state)(&snapshot.state.0)?.into(),
            applied: applied.collect(),
        })
    }

    fn open(self, types: Types) -> Result<Snapshot<Whole>, String> {
        let session = |cluster, epoch| Session { cluster: ClusterId(cluster), epoch };
        let applied: BTreeMap<Session, u64> =
            self.applied.into_iter().map(|(cluster, epoch, last)| (session(cluster, epoch), last)).collect();
        Ok(Snapshot {
            version: LeaderVersion { epoch: LeaderEpoch(self.epoch), number: self.number },
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
        Latest { epoch: 2, number: 5, state: vec![1], applied: vec![(1, 7, 4)] }
    }

    #[test]
    fn messages_keep_their_form() {
        let submit = Message::Submit {
            leader: 2,
            epoch: 7,
            request: 3,
            first: 4,
            settled_under: 1,
            updates: vec![vec![5].into()],
        };
        let answer = Message::Answer { request: 3, latest: latest(), outcomes: vec![(4, Sent::Confirmed)] };
        let all = [
            (submit, SUBMIT),
            (answer, ANSWER),
            (Message::Notify(latest()), NOTIFY),
            (Message::Collect(2), COLLECT),
            (Message::Collected(2, latest()), COLLECTED),
        ];
        for (message, golden) in all {
            let bytes = seal(1, &message).unwrap();
            assert_eq!(bytes.escape_ascii().to_string(), golden.escape_ascii().to_string());
            assert!(open::<Message>(golden).is_ok());
            for end in 0..golden.len() {
                assert!(open::<Message>(&golden[..end]).is_err(), "{end}");
            }
        }
    }

    const SUBMIT: &[u8] = b"\x01\x01\x81\xa6Submit\x86\xa6leader\x02\xa5epoch\x07\xa7request\x03\xa5first\x04\
        \xadsettled_under\x01\xa7updates\x91\xc4\x01\x05";
    const ANSWER: &[u8] =
        b"\x01\x01\x81\xa6Answer\x83\xa7request\x03\xa6latest\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04\xa8outcomes\x91\x92\x04\xa9Confirmed";
    const NOTIFY: &[u8] = b"\x01\x01\x81\xa6Notify\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04";
    const COLLECT: &[u8] = b"\x01\x01\x81\xa7Collect\x02";
    const COLLECTED: &[u8] = b"\x01\x01\x81\xa9Collected\x92\x02\x84\xa5epoch\x02\xa6number\x05\xa5state\xc4\x01\x01\
        \xa7applied\x91\x93\x01\x07\x04";
}
