//! `greenroom.v1.Actors`.

use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use greenroom::door::{Arguments, Call, Item, Problem, TopicWatch, Visit};
use http::HeaderMap;
use serde_json::Value as Json;
use tonic::{Request, Response, Status};

use crate::form::Form;
use crate::v1::actors_server;
use crate::v1::stream_item::Value;
use crate::v1::stream_request::Of;
use crate::v1::{
    CallReply, CallRequest, DescribeReply, DescribeRequest, Kind, Missed, SendReply, Slow, StreamItem, StreamRequest,
    TopicRequest,
};
use crate::{status, timeout};

/// The service, for one client.
pub(crate) struct Actors {
    visit: Visit,
}

impl Actors {
    pub(crate) fn new(visit: Visit) -> Self {
        Self { visit }
    }
}

#[tonic::async_trait]
impl actors_server::Actors for Actors {
    async fn call(&self, request: Request<CallRequest>) -> Result<Response<CallReply>, Status> {
        let (headers, message) = parts(request);
        let (call, form) = read(&headers, message)?;
        let reply = self.visit.call(&headers, call).await.map_err(told)?;
        Ok(Response::new(CallReply { value: Some(form.reply(&reply)?) }))
    }

    async fn send(&self, request: Request<CallRequest>) -> Result<Response<SendReply>, Status> {
        let (headers, message) = parts(request);
        let (call, _) = read(&headers, message)?;
        self.visit.send(&headers, call).await.map_err(told)?;
        Ok(Response::new(SendReply {}))
    }

    type StreamStream = Pin<Box<dyn Stream<Item = Result<StreamItem, Status>> + Send>>;

    async fn stream(&self, request: Request<StreamRequest>) -> Result<Response<Self::StreamStream>, Status> {
        let (headers, message) = parts(request);
        let (items, form) = match message.of {
            Some(Of::Call(call)) => {
                let (call, form) = read(&headers, call)?;
                (self.visit.stream(&headers, call).await.map_err(told)?, form)
            }
            Some(Of::Topic(topic)) => (self.visit.watch(&headers, watched(topic)).await.map_err(told)?, Form::Json),
            None => return Err(status::invalid("of", "say what to stream: a call, or a topic")),
        };
        let items = items.map(move |item| match item {
            Ok(Item::Value { id, value }) => Ok(StreamItem { id, value: Some(form.item(&value)?) }),
            Ok(Item::Missed(count)) => {
                Ok(StreamItem { id: String::new(), value: Some(Value::Missed(Missed { count })) })
            }
            Err(problem) => Err(status::of(&problem)),
        });
        Ok(Response::new(Box::pin(items)))
    }

    async fn describe(&self, request: Request<DescribeRequest>) -> Result<Response<DescribeReply>, Status> {
        let (headers, message) = parts(request);
        let one = Some(message.kind.as_str()).filter(|kind| !kind.is_empty());
        let said = self.visit.describe(&headers, one).await.map_err(told)?;
        let unreadable =
            |error: serde_json::Error| Status::internal(format!("the description cannot be read: {error}"));
        let document: Json = serde_json::from_str(&said).map_err(unreadable)?;
        let kinds = match one {
            Some(_) => vec![Kind { description: said, ..kind(&document) }],
            None => document["kinds"].as_array().into_iter().flatten().map(kind).collect(),
        };
        Ok(Response::new(DescribeReply { kinds }))
    }
}

fn parts<T>(request: Request<T>) -> (HeaderMap, T) {
    let (metadata, _, message) = request.into_parts();
    (metadata.into_headers(), message)
}

fn told(problem: Problem) -> Status {
    status::of(&problem)
}

fn read(headers: &HeaderMap, message: CallRequest) -> Result<(Call, Form), Status> {
    let CallRequest { kind, key, method, arguments, idempotency_key, context } = message;
    let (form, arguments): (Form, Arguments) = Form::read(arguments)?;
    let call = Call {
        kind,
        key,
        method,
        arguments,
        limit: timeout::of(headers)?,
        idempotency_key: Some(idempotency_key).filter(|key| !key.is_empty()),
        context: context.into_iter().collect(),
    };
    Ok((call, form))
}

fn watched(request: TopicRequest) -> TopicWatch {
    let disconnect = request.slow() == Slow::Disconnect;
    let TopicRequest { topic, after, queue, .. } = request;
    let (after, queue_len) = (Some(after).filter(|after| !after.is_empty()), Some(queue).filter(|queue| *queue > 0));
    TopicWatch { topic, after, queue_len, disconnect }
}

/// A kind from the list of kinds, or from its own description.
fn kind(said: &Json) -> Kind {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Json, name: &str| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.map(|entry| if name.is_empty() { text(entry) } else { text(&entry[name]) }).collect()
    };
    let of_description = said["methods"].get(0).is_some_and(Json::is_object);
    Kind {
        name: text(&said["kind"]),
        nodes: texts(&said["nodes"], ""),
        version: said["version"].as_u64().and_then(|version| u32::try_from(version).ok()).unwrap_or_default(),
        digest: text(&said["digest"]),
        methods: texts(&said["methods"], if of_description { "name" } else { "" }),
        description: String::new(),
    }
}
