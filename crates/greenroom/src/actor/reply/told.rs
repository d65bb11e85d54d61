//! What an actor's own error says to people, for doors that ask: its `Display`, which is known where its type is.

use std::any::Any;
use std::fmt::Display;
use std::marker::PhantomData;

use bytes::{BufMut, BytesMut};
use greenroom_wire::EncodeError;
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;

use super::TYPE_VERSION;

/// The sentence of an error, whose type is told apart.
pub(crate) type Says = fn(&(dyn Any + Send)) -> Option<String>;

/// The type of a method's error, asked for its sentence by `#[actor]`, which knows the type: [`SAYS`](Told::SAYS) is that of a
/// type with a `Display`, and of others that of [`Untold`].
#[doc(hidden)]
pub struct Told<E>(PhantomData<fn(E)>);

impl<E: Display + Send + 'static> Told<E> {
    /// Writes the error's sentence.
    pub const SAYS: Option<fn(&(dyn Any + Send)) -> Option<String>> = Some(says::<E>);
}

/// What is told of errors without a `Display`: nothing.
#[doc(hidden)]
pub trait Untold {
    /// Nothing.
    const SAYS: Option<fn(&(dyn Any + Send)) -> Option<String>> = None;
}

impl<E> Untold for Told<E> {}

fn says<E: Display + 'static>(error: &(dyn Any + Send)) -> Option<String> {
    error.downcast_ref::<E>().map(ToString::to_string)
}

/// How a caller wants its reply, as the payload of its arguments says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReplyForm {
    /// How values are written.
    pub(crate) codec: Codec,
    /// Whether errors come with their sentences.
    pub(crate) told: bool,
}

impl ReplyForm {
    /// What nodes speak.
    pub(crate) const PLAIN: Self = Self { codec: Codec::MessagePack, told: false };
    /// What doors ask for.
    #[cfg(feature = "http")]
    pub(crate) const DOOR: Self = Self { codec: Codec::Json, told: true };

    /// The form that the sender of `arguments` reads.
    pub(crate) fn asked_by(arguments: &[u8]) -> Self {
        codec::parse(arguments).map_or(Self::PLAIN, |payload| Self {
            codec: payload.codec,
            told: payload.codec == Codec::Json && payload.type_version == TOLD_VERSION,
        })
    }

    /// How a payload of this form begins.
    pub(crate) const fn head(self) -> [u8; 2] {
        [self.codec.tag(), if self.told { TOLD_VERSION } else { TYPE_VERSION }]
    }

    /// Writes an error, with what it says.
    ///
    /// # Errors
    /// What the serializer says.
    pub(super) fn encode_error<E: Serialize + Send + 'static>(
        self,
        error: &E,
        says: Option<Says>,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let sentence = says.filter(|_| self.told).and_then(|says| says(error));
        let before = out.len();
        codec::encode(self.codec, TYPE_VERSION, error, out)?;
        if let Some(sentence) = sentence {
            self.add_sentence(out, before, sentence);
        }
        Ok(())
    }

    /// Makes of the error that `out` ends with, from `before` on, one that says so much.
    #[cold]
    fn add_sentence(self, out: &mut BytesMut, before: usize, sentence: String) {
        let value = out.split_off(before);
        out.put_slice(&self.head());
        out.put_slice(br#"{"error":"#);
        out.put_slice(&value[self.head().len()..]);
        out.put_slice(br#","says":"#);
        out.put_slice(serde_json::Value::String(sentence).to_string().as_bytes());
        out.put_slice(b"}");
    }
}

/// An error that came as JSON: its value, and what it says if that came along. `None` for what is no JSON.
#[cfg(feature = "http")]
pub(crate) fn read_error(payload: &[u8]) -> Option<(serde_json::Value, Option<String>)> {
    let payload = codec::parse(payload).ok().filter(|payload| payload.codec == Codec::Json)?;
    if payload.type_version != TOLD_VERSION {
        return serde_json::from_slice(payload.value).ok().map(|error| (error, None));
    }
    let TextOf { error, says } = serde_json::from_slice(payload.value).ok()?;
    Some((error, Some(says)))
}

/// An error with what it says, as it travels.
#[cfg(feature = "http")]
#[derive(serde::Deserialize)]
struct TextOf {
    error: serde_json::Value,
    says: String,
}

/// The type version of JSON arguments whose sender reads errors with their sentences, and of such errors. Nodes of earlier
/// versions take any type version of arguments, and answer with errors as they always were.
const TOLD_VERSION: u8 = 2;

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Broke {
        wanted: u64,
    }

    impl Display for Broke {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "there is less than \"{}\"", self.wanted)
        }
    }

    #[derive(Serialize)]
    struct Silent(u64);

    fn written<E: Serialize + Send + 'static>(form: ReplyForm, error: &E, says: Option<Says>) -> Vec<u8> {
        let mut out = BytesMut::new();
        form.encode_error(error, says, &mut out).expect("it has an encoding");
        out.to_vec()
    }

    #[test]
    fn an_error_is_told_to_those_who_ask_for_it_alone() {
        let told = written(ReplyForm::DOOR, &Broke { wanted: 7 }, Told::<Broke>::SAYS);
        let golden = br#"{"error":{"wanted":7},"says":"there is less than \"7\""}"#;
        assert_eq!(told, [&[2, 2], &golden[..]].concat());
        let (value, says) = read_error(&told).expect("it is JSON");
        assert_eq!((value["wanted"].as_u64(), says.as_deref()), (Some(7), Some("there is less than \"7\"")));

        // As nodes of earlier versions ask, and write.
        let earlier = ReplyForm::asked_by(&[2, 1, b'{', b'}']);
        let plain = written(earlier, &Broke { wanted: 7 }, Told::<Broke>::SAYS);
        assert_eq!(plain, [&[2, 1], &br#"{"wanted":7}"#[..]].concat());
        assert_eq!(read_error(&plain), Some((serde_json::json!({ "wanted": 7 }), None)));

        assert_eq!(ReplyForm::asked_by(&[2, 2, b'{', b'}']), ReplyForm::DOOR);
        assert_eq!(ReplyForm::asked_by(&[1, 2, 0x80]), ReplyForm::PLAIN);
    }

    #[test]
    fn an_error_without_a_display_is_its_value() {
        let plain = written(ReplyForm::DOOR, &Silent(7), Told::<Silent>::SAYS);
        assert_eq!(plain, [2, 1, b'7']);
    }
}
