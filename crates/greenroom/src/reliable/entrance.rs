//! The way in: who calls a reliable actor calls its partition.

use greenroom_protocols::delivery::{Call, kept_under};
use greenroom_security::principal::Principal;

use super::answers::Answering;
use super::name::{Body, Letter, Named, Payload};
use super::start::Journals;
use crate::actor::error::{IDEMPOTENCY_KEY, Refusal};
use crate::actor::key::{KEY_LEN_MAX, check_within};
use crate::actor::reply::{TYPE_VERSION, refused};
use crate::here::Here;
use crate::shard::Shard;
use crate::shard::underway::{Opened, Underway, Way};

impl Way for Journals {
    fn takes(&self, node: &Here, message: &dyn Underway) -> bool {
        let kind = message.id().kind;
        message.interface().map_or_else(|| node.is_reliable_kind(kind), |interface| node.is_reliable(kind, interface))
    }

    fn send(&self, shard: &Shard, message: &mut dyn Underway) -> Result<(), Refusal> {
        let to = Named::of(message.id());
        if let Some(opened) = message.opened()? {
            shard.enter_partition(to, opened);
        }
        Ok(())
    }
}

impl Shard {
    /// Takes a message to the actor's partition.
    fn enter_partition(&self, to: Named, message: Opened) {
        let Opened { method, arguments, reply, deadline, chain } = message;
        let node = &self.port().node;
        let partitions = node.config().reliable.partitions;
        let birth = match to.check(partitions) {
            Ok(birth) => birth,
            Err(refusal) => return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone()))),
        };
        let key = chain.baggage.as_ref().and_then(|baggage| baggage.idempotency.as_deref());
        if let Err(refusal) = key.map_or(Ok(()), check_idempotency_key) {
            return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone())));
        }
        let call = reply.is_some().then(|| {
            let request = fingerprint(&method, &arguments);
            match key {
                Some(key) => Call { key: kept_for(&to, chain.principal(), key), request, recorded: true },
                None => {
                    let key = format!("{:x}-{:x}-{:x}", node.me().0, node.birth(), node.world().random());
                    Call { key, request, recorded: false }
                }
            }
        });
        let partition = self.partition(to.partition(partitions));
        let carried = match chain.baggage.as_ref().map_or(Ok(None), |baggage| baggage.carried()) {
            Ok(carried) => carried.map(Payload),
            Err(refusal) => return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone()))),
        };
        let body = Body::Call { method, arguments: Payload(arguments), carried };
        let letter = Letter { from: None, birth, to, creates: false, call, body };
        #[cfg(feature = "rehearsal")]
        if self.is_rehearsed() {
            return self.enter_company(letter, reply);
        }
        match reply {
            Some(reply) => self.call_for(partition.called(letter), Box::new(Answering(reply)), deadline, chain),
            None => partition.told(letter).send(),
        }
    }
}

/// Under what the answer to a call of `to` on behalf of `by` is kept.
fn kept_for(to: &Named, by: Option<&Principal>, key: &str) -> String {
    kept_under((&to.kind, &to.key), by.map(Principal::id).as_deref(), key)
}

/// Whether `key` may be an idempotency key: answers are kept under it, so it is bounded as keys of actors are.
fn check_idempotency_key(key: &str) -> Result<(), Refusal> {
    check_within(key, KEY_LEN_MAX).map_err(|why| {
        let message = format!("the idempotency key is not one: {why}");
        Refusal::Invalid { field: IDEMPOTENCY_KEY.to_owned(), message }
    })
}

/// A number that tells requests under one idempotency key apart (FNV-1a). How a door reads the reply is no part of them.
fn fingerprint(method: &str, arguments: &[u8]) -> u64 {
    let (head, value) = arguments.split_at_checked(2).unwrap_or((&[], arguments));
    let head = head.first().map(|codec| [*codec, TYPE_VERSION]);
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    method.as_bytes().iter().chain(&[0]).chain(head.iter().flatten()).chain(value).fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_however_its_caller_reads_the_reply() {
        let asked = |head: [u8; 2]| fingerprint("pay", &[&head[..], br#"{"amount":7}"#].concat());
        assert_eq!(asked([2, 1]), 0xe0d8be6d88ef3cab, "as it is in journals");
        assert_eq!(asked([2, 2]), asked([2, 1]));
        assert_ne!(asked([1, 1]), asked([2, 1]));
    }

    #[test]
    fn each_actor_principal_and_key_has_an_answer_of_its_own_where_it_always_was() {
        let under = |actor: &str, by: Option<&str>, key: &str| {
            let to = Named { kind: "wallet".into(), key: actor.into() };
            let by = by.map(|name| match name.split_once(" of ") {
                Some((name, issuer)) => Principal::new(name, [""]).issued_by(issuer),
                None => Principal::new(name, [""]),
            });
            kept_for(&to, by.as_ref(), key)
        };
        assert_eq!(under("ada", None, "17"), "wallet/ada#17", "a promise to journals");
        assert_eq!(under("ada", Some("bob"), "17"), "wallet/ada#bob\n17", "a promise to journals");
        assert_eq!(
            under("ada", Some("bob of https://id"), "17"),
            "wallet/ada#https://id\nbob\n17",
            "a promise to journals"
        );
        let texts = ["a", "b", "a#b", "b#a", "#", "#a", "a#"];
        let names = ["a\nb", "b\na", "\na", "a\n", "\n", "#\n", "a#b\na", "a\0b", "b\0a", "\0", "a of https://id"];
        let mut all = std::collections::BTreeMap::new();
        for actor in texts {
            for by in [None].into_iter().chain(texts.map(Some)).chain(names.map(Some)) {
                for key in texts {
                    let other = all.insert(under(actor, by, key), (actor, by, key));
                    assert_eq!(other, None, "{:?}", (actor, by, key));
                }
            }
        }
    }
}
