//! The three forms of arguments and of what comes back: MessagePack, JSON, and the values of protocol buffers.

use bytes::Bytes;
use greenroom::door::Arguments;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Number, Value as Json};
use tonic::Status;

use crate::status;
use crate::v1::{call_reply, call_request, stream_item};

/// How a client writes and reads values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    MessagePack,
    Json,
    Fields,
}

impl Form {
    /// The form of a call's arguments, and the arguments.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: a number is none that JSON knows.
    pub(crate) fn read(arguments: Option<call_request::Arguments>) -> Result<(Self, Arguments), Status> {
        Ok(match arguments {
            None => (Self::Json, Arguments::Json(Bytes::new())),
            Some(call_request::Arguments::Msgpack(bytes)) => (Self::MessagePack, Arguments::MessagePack(bytes.into())),
            Some(call_request::Arguments::Json(text)) => (Self::Json, Arguments::Json(text.into())),
            Some(call_request::Arguments::Fields(fields)) => {
                let object = json_of_fields(fields, "")?;
                (Self::Fields, Arguments::Json(object.to_string().into()))
            }
        })
    }

    /// What a method has returned, in this form.
    ///
    /// # Errors
    /// UNKNOWN: it cannot be written so; the method has run.
    pub(crate) fn reply(self, value: &[u8]) -> Result<call_reply::Value, Status> {
        Ok(match self {
            Self::MessagePack => call_reply::Value::Msgpack(value.to_vec()),
            Self::Json => call_reply::Value::Json(text(value)?),
            Self::Fields => call_reply::Value::Fields(fields(value)?),
        })
    }

    /// An item of a stream, in this form.
    ///
    /// # Errors
    /// As for [`reply`](Self::reply).
    pub(crate) fn item(self, value: &[u8]) -> Result<stream_item::Value, Status> {
        Ok(match self {
            Self::MessagePack => stream_item::Value::Msgpack(value.to_vec()),
            Self::Json => stream_item::Value::Json(text(value)?),
            Self::Fields => stream_item::Value::Fields(fields(value)?),
        })
    }
}

fn text(value: &[u8]) -> Result<String, Status> {
    String::from_utf8(value.to_vec()).map_err(|error| status::unreadable(&error))
}

fn fields(value: &[u8]) -> Result<Value, Status> {
    let json: Json = serde_json::from_slice(value).map_err(|error| status::unreadable(&error))?;
    Ok(value_of(json))
}

fn value_of(json: Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(value),
        Json::Number(number) => match exact(&number) {
            Some(value) => Kind::NumberValue(value),
            None => Kind::StringValue(number.to_string()),
        },
        Json::String(text) => Kind::StringValue(text),
        Json::Array(values) => Kind::ListValue(ListValue { values: values.into_iter().map(value_of).collect() }),
        Json::Object(members) => {
            let fields = members.into_iter().map(|(name, value)| (name, value_of(value))).collect();
            Kind::StructValue(Struct { fields })
        }
    };
    Value { kind: Some(kind) }
}

/// The number as a double, unless that is another number.
fn exact(number: &Number) -> Option<f64> {
    let is_safe = match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => value.unsigned_abs() <= SAFE_MAX,
        (_, Some(value)) => value <= SAFE_MAX,
        _ => true,
    };
    number.as_f64().filter(|_| is_safe)
}

fn json_of_fields(fields: Struct, path: &str) -> Result<Json, Status> {
    let mut members = Map::new();
    for (name, value) in fields.fields {
        let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        members.insert(name, json_of(value, &place)?);
    }
    Ok(Json::Object(members))
}

fn json_of(value: Value, path: &str) -> Result<Json, Status> {
    Ok(match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(value)) => Json::Bool(value),
        Some(Kind::StringValue(text)) => Json::String(text),
        Some(Kind::NumberValue(value)) => Json::Number(number(value).ok_or_else(|| {
            status::invalid(path, &format!("{value} is a number that JSON does not know; send a finite one"))
        })?),
        Some(Kind::ListValue(list)) => {
            let values = list.values.into_iter().enumerate();
            Json::Array(
                values.map(|(index, value)| json_of(value, &format!("{path}[{index}]"))).collect::<Result<_, _>>()?,
            )
        }
        Some(Kind::StructValue(fields)) => json_of_fields(fields, path)?,
    })
}

/// Makes integers of all whole numbers, as methods want them.
pub(crate) fn make_whole(json: &mut Json) {
    match json {
        Json::Number(found) if found.is_f64() => {
            if let Some(whole) = found.as_f64().and_then(number) {
                *found = whole;
            }
        }
        Json::Array(values) => values.iter_mut().for_each(make_whole),
        Json::Object(members) => members.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// Whole numbers are integers, as methods want them, if programs have such: from -2^63 to below 2^64.
fn number(value: f64) -> Option<Number> {
    match value {
        whole if whole.fract() == 0.0 && (-TWO_TO_63..0.0).contains(&whole) => Some(Number::from(whole as i64)),
        whole if whole.fract() == 0.0 && (0.0..2.0 * TWO_TO_63).contains(&whole) => Some(Number::from(whole as u64)),
        other => Number::from_f64(other),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
/// The integers up to this one are all doubles: 2^53.
const SAFE_MAX: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_double_cannot_hold_is_text() {
        for (number, held) in [
            (json!(1u64 << 53), true),
            (json!((1u64 << 53) + 1), false),
            (json!(i64::MIN), false),
            (json!(u64::MAX), false),
            (json!(0.5), true),
        ] {
            let kind = value_of(number.clone()).kind.expect("it has a kind");
            assert_eq!(matches!(kind, Kind::NumberValue(_)), held, "{number}");
            if let Kind::StringValue(text) = kind {
                assert_eq!(text, number.to_string());
            }
        }
    }

    #[test]
    fn whole_numbers_are_integers_and_others_stay() {
        let number = |value| json_of(Value { kind: Some(Kind::NumberValue(value)) }, "a").map(|json| json.to_string());
        assert_eq!(number(7.0).ok().as_deref(), Some("7"));
        assert_eq!(number(-0.0).ok().as_deref(), Some("0"));
        assert_eq!(number(7.5).ok().as_deref(), Some("7.5"));
        assert_eq!(number(1_152_921_504_606_846_976.0).ok().as_deref(), Some("1152921504606846976"), "2^60");
        assert_eq!(number(-9_223_372_036_854_775_808.0).ok().as_deref(), Some("-9223372036854775808"));
        assert_eq!(number(1e300).ok().as_deref(), Some("1e+300"));
        let refused = number(f64::NAN).expect_err("JSON has no such number");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    }

    #[test]
    fn a_value_comes_back_as_it_was() {
        let value = json!({ "a": [1, -2.5, null, true, "x"], "b": { "c": {} } });
        let there = value_of(value.clone());
        let back = json_of(there, "").expect("it is JSON");
        assert_eq!(back, value);
    }
}
