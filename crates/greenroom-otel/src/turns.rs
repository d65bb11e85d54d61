//! Turns as spans and as numbers.

use std::sync::Arc;
use std::time::SystemTime;

use greenroom::{CallInfo, End, Outcome, Refusal, TraceContext};
use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};

use crate::SCOPE;

/// Makes spans of turns.
pub(crate) struct Turns {
    spans: BatchSpanProcessor,
    scope: InstrumentationScope,
    ids: RandomIdGenerator,
    /// Traces that begin here are recorded if the beginning of their id is below this.
    sampled: f64,
    took: Histogram<f64>,
}

impl Turns {
    pub(crate) fn new(spans: BatchSpanProcessor, meter: &Meter, sampled: f64) -> Self {
        let took = meter.f64_histogram("greenroom.turn.duration").with_unit("s").with_description("Time of turns");
        let scope = InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build();
        Self { spans, scope, ids: RandomIdGenerator::default(), sampled, took: took.build() }
    }

    pub(crate) fn stop(&self) {
        // What cannot be reported now never will be.
        let _ = self.spans.shutdown();
    }

    /// The span of a turn whose message came with `parent`.
    fn place(&self, parent: Option<TraceContext>) -> Option<TraceContext> {
        let span = self.ids.new_span_id().to_bytes();
        match parent {
            Some(parent) => Some(parent.child(span)),
            None => {
                let trace = self.ids.new_trace_id().to_bytes();
                let place =
                    f64::from(u32::from_be_bytes([trace[0], trace[1], trace[2], trace[3]])) / f64::from(u32::MAX);
                TraceContext::new(trace, span, self.sampled >= 1.0 || place < self.sampled)
            }
        }
    }

    fn finished(&self, call: &CallInfo<'_>, end: &End) {
        let (kind, method) = (KeyValue::new("rpc.service", call.kind()), KeyValue::new("rpc.method", call.method()));
        let outcome = match end.outcome {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Refused => "refused",
            _ => "broken",
        };
        let outcome = KeyValue::new("greenroom.outcome", outcome);
        self.took.record(end.took.as_secs_f64(), &[kind.clone(), method.clone(), outcome.clone()]);
        let Some(trace) = call.trace().filter(TraceContext::is_sampled) else { return };
        let end_time = SystemTime::now();
        let system = KeyValue::new("rpc.system", "greenroom");
        let actor = KeyValue::new("greenroom.actor", call.actor().to_string());
        let caller = call.caller().map(|caller| KeyValue::new("greenroom.caller", caller.to_owned()));
        self.spans.on_end(SpanData {
            span_context: SpanContext::new(
                TraceId::from_bytes(trace.trace_id()),
                SpanId::from_bytes(trace.span_id()),
                TraceFlags::SAMPLED,
                false,
                trace.state().parse().unwrap_or(TraceState::NONE),
            ),
            parent_span_id: call
                .came_with_trace()
                .map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.span_id())),
            parent_span_is_remote: call.came_with_trace().is_some(),
            span_kind: SpanKind::Server,
            name: format!("{}.{}", call.kind(), call.method()).into(),
            start_time: end_time.checked_sub(end.took).unwrap_or(end_time),
            end_time,
            attributes: [system, kind, method, actor, outcome].into_iter().chain(caller).collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: match end.outcome {
                Outcome::Ok => Status::Unset,
                Outcome::Error => Status::error("the method's own error"),
                Outcome::Refused => Status::error("refused"),
                _ => Status::error("the turn did not end"),
            },
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// What a node is given.
pub(crate) struct Interceptor(pub(crate) Arc<Turns>);

impl greenroom::Interceptor for Interceptor {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        if let Some(place) = self.0.place(call.trace()) {
            call.set_trace(place);
        }
        Ok(())
    }

    fn finished(&self, call: &CallInfo<'_>, end: &End) {
        self.0.finished(call, end);
    }
}
