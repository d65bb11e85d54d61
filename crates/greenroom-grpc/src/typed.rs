//! Requests of services that kinds have: their messages are known by descriptors alone.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use greenroom::door::{Arguments, Call, Item, Visit};
use http::HeaderMap;
use http_body_util::Full;
use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions, Value};
use serde_json::{Map, Value as Json};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::Grpc;
use tonic::{Request, Response, Status};

use crate::services::Typed;
use crate::{form, status, timeout};

/// Answers a request whose body is whole.
pub(crate) async fn answer(visit: &Visit, typed: &Typed, request: http::Request<Full<Bytes>>) -> http::Response<Body> {
    let (calling, is_stream) = (Calling { visit: visit.clone(), typed: typed.clone() }, typed.is_stream);
    let mut grpc = Grpc::new(Messages(typed.clone())).max_decoding_message_size(usize::MAX);
    match is_stream {
        true => grpc.server_streaming(Streaming(calling), request).await,
        false => grpc.unary(calling, request).await,
    }
}

/// Makes the calls of one method.
#[derive(Clone)]
struct Calling {
    visit: Visit,
    typed: Typed,
}

/// The same of one that answers with a stream.
struct Streaming(Calling);

type Answer<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;
type Items = Pin<Box<dyn Stream<Item = Result<DynamicMessage, Status>> + Send>>;

impl tower_service::Service<Request<DynamicMessage>> for Calling {
    type Response = Response<DynamicMessage>;
    type Error = Status;
    type Future = Answer<DynamicMessage>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<DynamicMessage>) -> Self::Future {
        let Self { visit, typed } = self.clone();
        Box::pin(async move {
            let (headers, call) = typed.read(request)?;
            let reply = visit.call(&headers, call).await.map_err(|problem| status::of(&problem))?;
            Ok(Response::new(typed.written(&reply)?))
        })
    }
}

impl tower_service::Service<Request<DynamicMessage>> for Streaming {
    type Response = Response<Items>;
    type Error = Status;
    type Future = Answer<Items>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<DynamicMessage>) -> Self::Future {
        let Calling { visit, typed } = self.0.clone();
        Box::pin(async move {
            let (headers, call) = typed.read(request)?;
            let items = visit.stream(&headers, call).await.map_err(|problem| status::of(&problem))?;
            let written = items.map(move |item| match item {
                Ok(Item::Value { value, .. }) => typed.written(&value),
                Ok(Item::Missed(_)) => Err(Status::internal("a stream of an actor misses no items")),
                Err(problem) => Err(status::of(&problem)),
            });
            Ok(Response::new(Box::pin(written) as Items))
        })
    }
}

impl Typed {
    /// The call that a request asks for.
    fn read(&self, request: Request<DynamicMessage>) -> Result<(HeaderMap, Call), Status> {
        let (metadata, _, message) = request.into_parts();
        let headers = metadata.into_headers();
        let key = message.get_field_by_name("key").and_then(|key| key.as_str().map(str::to_owned)).unwrap_or_default();
        let arguments = message.get_field_by_name("arguments");
        let mut json = match arguments.as_deref().and_then(Value::as_message) {
            Some(arguments) => json_of(arguments).map_err(|error| status::invalid("arguments", &error.to_string()))?,
            None => Json::Object(Map::new()),
        };
        form::make_whole(&mut json);
        let idempotency_key =
            headers.get(IDEMPOTENCY_KEY).map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
        let call = Call {
            kind: self.kind.clone(),
            key,
            method: self.method.clone(),
            arguments: Arguments::Json(json.to_string().into()),
            limit: timeout::of(&headers)?,
            idempotency_key,
            context: Vec::new(),
        };
        Ok((headers, call))
    }

    /// What a method has answered, as the message that stands for it.
    fn written(&self, value: &[u8]) -> Result<DynamicMessage, Status> {
        let value: Json = serde_json::from_slice(value).map_err(|error| status::unreadable(&error))?;
        let answer = match value {
            Json::Null => Json::Object(Map::new()),
            value => Json::Object(Map::from_iter([("value".to_owned(), value)])),
        };
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        DynamicMessage::deserialize_with_options(self.answer.clone(), answer, &options).map_err(|error| {
            status::unreadable(&format!("{error}, so the descriptors are of another version of the kind"))
        })
    }
}

/// All members under their own names; what may be left out is there if it is set.
fn json_of(message: &DynamicMessage) -> Result<Json, serde_json::Error> {
    let options =
        SerializeOptions::new().stringify_64_bit_integers(false).use_proto_field_name(true).skip_default_fields(false);
    message.serialize_with_options(serde_json::value::Serializer, &options)
}

/// Reads requests and writes answers of a method.
struct Messages(Typed);

struct Reading(MessageDescriptor);

struct Writing;

impl Codec for Messages {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Writing;
    type Decoder = Reading;

    fn encoder(&mut self) -> Writing {
        Writing
    }

    fn decoder(&mut self) -> Reading {
        Reading(self.0.request.clone())
    }
}

impl Encoder for Writing {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(out).map_err(|error| status::unreadable(&error))
    }
}

impl Decoder for Reading {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let read = DynamicMessage::decode(self.0.clone(), bytes);
        read.map(Some).map_err(|error| status::invalid("", &format!("it is no {}: {error}", self.0.full_name())))
    }
}

const IDEMPOTENCY_KEY: &str = "idempotency-key";
