//! The way in: who calls a reliable actor calls its partition.

use bytes::BytesMut;
use greenroom_protocols::delivery::{Call, kept_under};
use greenroom_security::principal::Principal;
use greenroom_wire::codec::{self, Codec, Payload};
use serde_json::{Number, Value};

use super::answers::Answering;
use super::name::{self, Body, Letter, Named};
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
            let written = fingerprint(&method, &arguments);
            match key {
                Some(key) => {
                    let request = decoded(&arguments).map_or(written, |decoded| fingerprint(&method, &decoded));
                    let as_written = Some(written).filter(|written| *written != request);
                    Call { key: kept_for(&to, chain.principal(), key), request, as_written, recorded: true }
                }
                None => {
                    let key = format!("{:x}-{:x}-{:x}", node.me().0, node.birth(), node.world().random());
                    Call { key, request: written, as_written: None, recorded: false }
                }
            }
        });
        let partition = self.partition(to.partition(partitions));
        let carried = match chain.baggage.as_ref().map_or(Ok(None), |baggage| baggage.carried()) {
            Ok(carried) => carried.map(name::Payload),
            Err(refusal) => return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone()))),
        };
        let body = Body::Call { method, arguments: name::Payload(arguments), carried };
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

/// Returns the arguments in the one form that all writings of them have in common: JSON without spaces, with members in order, and with
/// integers written as such. `None` if they have none, as NaN.
fn decoded(arguments: &[u8]) -> Option<Vec<u8>> {
    let mut json = BytesMut::new();
    codec::rewrite(arguments, Codec::Json, &mut json).ok()?;
    let Payload { type_version, value, .. } = codec::parse(&json).ok()?;
    let mut value: Value = serde_json::from_slice(value).ok()?;
    write_alike(&mut value);
    let mut out = vec![Codec::Json.tag(), type_version];
    serde_json::to_writer(&mut out, &value).ok()?;
    Some(out)
}

/// Gives numbers that are equal one form, and members their order.
fn write_alike(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole =
                number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < INTEGERS_END);
            if let Some(whole) = whole {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(write_alike),
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(write_alike);
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Floats below it that are whole are the same integer in every language: 2^63.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

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
    fn a_request_is_the_same_however_it_is_written() {
        let json = |text: &str| decoded(&[b"\x02\x01", text.as_bytes()].concat()).expect("it is JSON");
        let same = json(r#"{"amount":10,"order":{"id":"x","lines":[1,2.5]}}"#);
        assert_eq!(same, b"\x02\x01{\"amount\":10,\"order\":{\"id\":\"x\",\"lines\":[1,2.5]}}");
        for text in [
            r#"{"order":{"lines":[1,2.5],"id":"x"},"amount":10}"#,
            "{ \"amount\" : 10,\n\"order\":{\"id\":\"\\u0078\",\"lines\":[1.0,25e-1]}}",
        ] {
            assert_eq!(json(text), same, "{text}");
        }
        let mut packed = BytesMut::new();
        codec::rewrite(&same, Codec::MessagePack, &mut packed).expect("it has a form in MessagePack");
        assert_eq!(decoded(&packed), Some(same.clone()));
        for text in [
            r#"{"amount":11,"order":{"id":"x","lines":[1,2.5]}}"#,
            r#"{"amount":"10","order":{"id":"x","lines":[1,2.5]}}"#,
        ] {
            assert_ne!(json(text), same, "{text}");
        }
        assert_eq!(decoded(b"\x02\x01{"), None);
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
