//! Frames as JSON, for the tests of hosts in other languages.

use greenroom_wire::host::{Activate, Ask, Call, Fields, Form, FromHost, FromNode, Turn, TurnEnd};
use serde::Serialize;
use serde_json::{Value, json};

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A frame's name, and its fields: bytes in hexadecimal digits, times in µs (0: no limit), what is not there as null.
pub(crate) fn host_frame(frame: &FromHost<'_>) -> (&'static str, Value) {
    match *frame {
        FromHost::Hello(ref hello) => ("Hello", greeting((hello.versions.min, hello.versions.max), &hello.map)),
        FromHost::Describe { kind, version, json } => {
            ("Describe", json!({ "kind": kind, "version": version, "json": hex(json) }))
        }
        FromHost::Alive { number } => ("Alive", json!({ "number": number })),
        FromHost::Drain => ("Drain", json!({})),
        FromHost::Goodbye { code, reason } => ("Goodbye", json!({ "code": code.to_byte(), "reason": reason })),
        FromHost::LaneDropped { shard } => ("LaneDropped", json!({ "shard": shard })),
        FromHost::Join(ref join) => {
            let map = to_map(&join.map);
            ("Join", json!({ "version": join.version, "map": map }))
        }
        FromHost::Activated { seat, status, payload } => {
            ("Activated", json!({ "seat": seat, "status": status.to_byte(), "payload": hex(payload) }))
        }
        FromHost::Released { seat, status, payload } => {
            ("Released", json!({ "seat": seat, "status": status.to_byte(), "payload": hex(payload) }))
        }
        FromHost::TurnEnd(TurnEnd { turn, status, changes, jump, is_halt, stream, payload }) => (
            "TurnEnd",
            json!({
                "turn": turn, "status": status.to_byte(), "changes": changes.map(fields), "jump": jump, "halt": is_halt,
                "stream": stream, "payload": hex(payload),
            }),
        ),
        FromHost::Define { route, kind, method, version } => {
            ("Define", json!({ "route": route, "kind": kind, "method": method, "version": version }))
        }
        FromHost::Call(Call { request, turn, route, key, left, extension, payload }) => (
            "Call",
            json!({
                "request": request, "turn": turn, "route": route, "key": key, "left_us": micros(left),
                "extension": hex(extension.as_bytes()), "payload": hex(payload),
            }),
        ),
        FromHost::CancelCall { request } => ("CancelCall", json!({ "request": request })),
        FromHost::Ask(Ask { request, turn, seat, operation, payload }) => (
            "Ask",
            json!({
                "request": request, "turn": turn, "seat": seat, "operation": operation.to_byte(),
                "payload": hex(payload),
            }),
        ),
        FromHost::StreamItem { stream, number, payload } => ("StreamItem", item(stream, number, payload)),
        FromHost::StreamCredit { stream, window, consumed } => ("StreamCredit", credit(stream, window, consumed)),
        FromHost::StreamEnd { stream, number, status, payload } => {
            ("StreamEnd", end(stream, number, status.to_byte(), payload))
        }
        _ => panic!("a frame without a JSON form"),
    }
}

/// As [`host_frame`].
pub(crate) fn node_frame(frame: &FromNode<'_>) -> (&'static str, Value) {
    match *frame {
        FromNode::Welcome(ref welcome) => ("Welcome", greeting((welcome.version, welcome.version), &welcome.map)),
        FromNode::Offered { offer, kind, status, reason } => {
            ("Offered", json!({ "offer": offer, "kind": kind, "status": status.to_byte(), "reason": reason }))
        }
        FromNode::Lease { number, ms } => ("Lease", json!({ "number": number, "ms": ms })),
        FromNode::Nodes(ref nodes) => {
            let map = to_map(nodes);
            ("Nodes", json!({ "map": map }))
        }
        FromNode::Goodbye { code, reason } => ("Goodbye", json!({ "code": code.to_byte(), "reason": reason })),
        FromNode::LaneLost { shard } => ("LaneLost", json!({ "shard": shard })),
        FromNode::Activate(Activate { seat, offer, epoch, state, carried, key, fields: all }) => (
            "Activate",
            json!({
                "seat": seat, "offer": offer, "epoch": epoch, "state": state, "carried": carried.map(hex), "key": key,
                "fields": fields(all),
            }),
        ),
        FromNode::Deactivate { seat, why, is_carry, is_abandon } => {
            ("Deactivate", json!({ "seat": seat, "why": why.to_byte(), "carry": is_carry, "abandon": is_abandon }))
        }
        FromNode::Turn(Turn { turn, seat, method, is_awaited, is_read, is_tick, left, extension, payload }) => (
            "Turn",
            json!({
                "turn": turn, "seat": seat, "method": method, "awaited": is_awaited, "read": is_read, "tick": is_tick,
                "left_us": micros(left), "extension": hex(extension.as_bytes()), "payload": hex(payload),
            }),
        ),
        FromNode::CancelTurn { turn } => ("CancelTurn", json!({ "turn": turn })),
        FromNode::Reply { request, status, payload } => {
            ("Reply", json!({ "request": request, "status": status.to_byte(), "payload": hex(payload) }))
        }
        FromNode::OperationRefused { turn, actor, operation, reason } => {
            ("OperationRefused", json!({ "turn": turn, "actor": actor, "operation": operation, "reason": reason }))
        }
        FromNode::StreamItem { stream, number, payload } => ("StreamItem", item(stream, number, payload)),
        FromNode::StreamCredit { stream, window, consumed } => ("StreamCredit", credit(stream, window, consumed)),
        FromNode::StreamEnd { stream, number, status, payload } => {
            ("StreamEnd", end(stream, number, status.to_byte(), payload))
        }
        FromNode::Credit { granted } => ("Credit", json!({ "granted": granted })),
        _ => panic!("a frame without a JSON form"),
    }
}

fn greeting((min, max): (u16, u16), map: &impl Serialize) -> Value {
    let map = to_map(map);
    json!({ "min": min, "max": max, "map": map })
}

/// A map as JSON: its only bytes are secrets.
fn to_map(map: &impl Serialize) -> Value {
    fn with_hex(value: Value) -> Value {
        match value {
            Value::Object(map) => map
                .into_iter()
                .map(|(name, value)| match value {
                    Value::Array(bytes) if name == "secret" => {
                        let bytes: Vec<u8> = bytes.iter().filter_map(|byte| byte.as_u64()?.try_into().ok()).collect();
                        (name, hex(&bytes).into())
                    }
                    value => (name, with_hex(value)),
                })
                .collect(),
            value => value,
        }
    }
    with_hex(serde_json::to_value(map).unwrap())
}

fn fields(fields: Fields<'_>) -> Value {
    let field = |(name, form): (&str, Form<'_>)| match form {
        Form::Whole(value) => json!({ "name": name, "whole": hex(value) }),
        Form::Entries(entries) => {
            let entry = |(name, value): (&str, Option<&[u8]>)| json!({ "name": name, "value": value.map(hex) });
            let entries: Vec<_> = entries.iter().map(entry).collect();
            json!({ "name": name, "entries": entries })
        }
    };
    fields.iter().map(field).collect()
}

fn item(stream: u64, number: u64, payload: &[u8]) -> Value {
    json!({ "stream": stream, "number": number, "payload": hex(payload) })
}

fn credit(stream: u64, window: u32, consumed: u64) -> Value {
    json!({ "stream": stream, "window": window, "consumed": consumed })
}

fn end(stream: u64, number: u64, status: u8, payload: &[u8]) -> Value {
    json!({ "stream": stream, "number": number, "status": status, "payload": hex(payload) })
}

fn micros(left: Option<std::time::Duration>) -> u64 {
    left.map_or(0, |left| left.as_micros() as u64)
}
