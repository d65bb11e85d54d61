//! A collector sees one trace over two nodes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, TraceContext};
use greenroom_otel::{Settings, Telemetry};
use greenroom_store::memory::MemoryStore;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Lives on one node and calls the other.
#[derive(Default, Actor)]
struct Near {}

#[actor]
impl Near {
    pub async fn pass(&mut self, cx: &Cx) -> Result<u64, String> {
        FarRef::of(cx, "b").answer().await.map_err(|error| error.to_string())
    }
}

#[derive(Default, Actor)]
struct Far {}

#[actor]
impl Far {
    pub async fn answer(&mut self) -> u64 {
        42
    }
}

/// What was posted: the path and the body.
type Posted = (String, Vec<u8>);

/// A collector that takes everything.
fn collector() -> (String, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (posted, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let posted = posted.clone();
            std::thread::spawn(move || serve(stream, &posted));
        }
    });
    (format!("http://{address}"), received)
}

fn serve(stream: TcpStream, posted: &Sender<Posted>) {
    let mut answers = stream.try_clone().expect("a socket can be cloned");
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut len = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).expect("a head is whole");
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                len = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body).expect("a body is whole");
        // The test may have seen enough.
        let _ = posted.send((path, body));
        if answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

async fn start(store: &Arc<MemoryStore>, telemetry: &Telemetry, name: &str, equip: fn(Builder) -> Builder) -> Node {
    let builder = Node::builder().name(name).store(store.clone()).configure(|config| config.shards = 1);
    equip(builder).intercept(telemetry.interceptor()).start().await.expect("a node starts")
}

/// Spans with the service that reported them, until there are two.
fn two_spans(received: &Receiver<Posted>) -> Vec<(String, Span)> {
    let mut spans = Vec::new();
    while spans.len() < 2 {
        let (path, body) = received.recv_timeout(Duration::from_secs(20)).expect("spans are reported");
        if path != "/v1/traces" {
            continue;
        }
        for resource in ExportTraceServiceRequest::decode(&body[..]).expect("it is OTLP").resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let service = format!("{:?}", attributes.first().and_then(|service| service.value.clone()));
            let all = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.extend(all.map(|span| (service.clone(), span)));
        }
    }
    spans
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_sees_one_trace_over_two_nodes() {
    let (endpoint, received) = collector();
    let store = Arc::new(MemoryStore::new());
    let [a, b] = ["node a", "node b"].map(|service| {
        let mut settings = Settings::new(&endpoint);
        settings.service = service.to_owned();
        settings.interval = Duration::from_millis(100);
        Telemetry::start(settings).expect("it is an endpoint")
    });
    let near = start(&store, &a, "a", |builder| builder.register::<Near>()).await;
    let far = start(&store, &b, "b", |builder| builder.register::<Far>()).await;
    while near.members().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    a.measure(&near);
    let root = TraceContext::new([7; 16], [9; 8], true).expect("ids are not zero");
    assert_eq!(NearRef::of(&near, "a").pass().traced(root).await, Ok(42));

    let spans = tokio::task::spawn_blocking(move || {
        let spans = two_spans(&received);
        let measured = std::iter::from_fn(|| received.recv_timeout(Duration::from_secs(20)).ok())
            .filter(|(path, _)| path == "/v1/metrics")
            .map(|(_, body)| ExportMetricsServiceRequest::decode(&body[..]).expect("it is OTLP"))
            .any(|request| {
                let said = format!("{request:?}");
                ["greenroom.turn.duration", "greenroom.activations", "greenroom_reliable_turns_total"]
                    .iter()
                    .all(|metric| said.contains(metric))
            });
        assert!(measured, "metrics are reported");
        spans
    })
    .await
    .unwrap();
    let named = |name: &str| spans.iter().find(|(_, span)| span.name == name).expect("there is one");
    let ((near_service, near_span), (far_service, far_span)) = (named("near.pass"), named("far.answer"));
    assert!(near_service.contains("node a") && far_service.contains("node b"), "{near_service} {far_service}");
    assert_eq!((&near_span.trace_id[..], &near_span.parent_span_id[..]), (&[7; 16][..], &[9; 8][..]));
    assert_eq!((&far_span.trace_id, &far_span.parent_span_id), (&near_span.trace_id, &near_span.span_id));
    near.stop().await;
    far.stop().await;
    a.stop();
    b.stop();
}
