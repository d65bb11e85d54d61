//! OpenTelemetry for Greenroom: a span for each turn, linked over nodes by W3C trace context, and metrics, sent by OTLP
//! over HTTP to a collector.
//!
//! ```no_run
//! use greenroom::Node;
//! use greenroom_otel::{Settings, Telemetry};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let telemetry = Telemetry::start(Settings::new("http://127.0.0.1:4318"))?;
//! let node = Node::builder().intercept(telemetry.interceptor()).start().await?;
//! telemetry.measure(&node);
//! node.run_until_ctrl_c().await?;
//! telemetry.stop();
//! # Ok(())
//! # }
//! ```
//!
//! Spans and numbers are handed to threads of the exporters, which drop what does not fit their bounded queues: a collector
//! that is slow or gone never holds a turn up.

mod client;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use greenroom::{Interceptor, Node};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, MeterProvider};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};
use thiserror::Error;

use crate::client::Client;
use crate::turns::Turns;

/// Where telemetry goes, and how much of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The collector's OTLP address over plain HTTP: `http://host:4318`, to which `/v1/traces` and `/v1/metrics` are
    /// added.
    pub endpoint: String,
    /// What the service is called; `greenroom` by default.
    pub service: String,
    /// The share of traces that begin here and are recorded, from 0 to 1; all by default. Those that come in from outside
    /// say themselves.
    pub sampled: f64,
    /// Time between two reports of spans, and of metrics; 5 s by default.
    pub interval: Duration,
}

impl Settings {
    /// Everything, to the collector at `endpoint`.
    pub fn new(endpoint: impl Into<String>) -> Self {
        let (service, interval) = ("greenroom".to_owned(), Duration::from_secs(5));
        Self { endpoint: endpoint.into(), service, sampled: 1.0, interval }
    }
}

/// Why telemetry could not start. Nothing runs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The endpoint is none.
    #[error(
        "{endpoint:?} is no OTLP endpoint; write http://HOST:4318, with a collector near by for what must be encrypted"
    )]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// An exporter could not be made.
    #[error("the exporter cannot be made: {0}")]
    Exporter(String),
}

/// A process's way to its collector. Clones share it.
#[derive(Clone)]
pub struct Telemetry {
    turns: Arc<Turns>,
    meters: SdkMeterProvider,
}

impl Telemetry {
    /// Starts the exporters' threads. Whether the collector answers shows later, and changes nothing for turns.
    ///
    /// # Errors
    /// [`enum@Error`].
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let Settings { endpoint, service, sampled, interval } = settings;
        let base = endpoint.trim_end_matches('/');
        if !base.starts_with("http://") || base.len() == "http://".len() {
            return Err(Error::Endpoint { endpoint });
        }
        let failed = |error: &dyn std::fmt::Display| Error::Exporter(error.to_string());
        let client = Client::new(EXPORT_TIMEOUT);
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/traces"))
            .build()
            .map_err(|error| failed(&error))?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/metrics"))
            .build()
            .map_err(|error| failed(&error))?;
        let resource = Resource::builder_empty().with_attribute(KeyValue::new("service.name", service)).build();
        let config = BatchConfigBuilder::default().with_scheduled_delay(interval).build();
        let mut processor = BatchSpanProcessor::builder(spans).with_batch_config(config).build();
        processor.set_resource(&resource);
        let reader = PeriodicReader::builder(metrics).with_interval(interval).build();
        let meters = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        let turns = Arc::new(Turns::new(processor, &meters.meter(SCOPE), sampled));
        Ok(Self { turns, meters })
    }

    /// What to [give to a node](greenroom::Builder::intercept): it makes a span of each turn, and measures it.
    pub fn interceptor(&self) -> impl Interceptor + use<> {
        turns::Interceptor(self.turns.clone())
    }

    /// Reports how many activations `node` has, and its [figures](Node::figures), for as long as this lives.
    pub fn measure(&self, node: &Node) {
        let name = KeyValue::new("greenroom.node", node.name().to_owned());
        let meter = self.meters.meter(SCOPE);
        let gauge = meter.u64_observable_gauge("greenroom.activations").with_description("Activations on a node");
        let (of, by) = (node.clone(), name.clone());
        gauge.with_callback(move |gauge| gauge.observe(of.activations(), std::slice::from_ref(&by))).build();
        for figure in node.figures() {
            let (of, by, shown) = (node.clone(), name.clone(), figure.name());
            let observe = move |observer: &dyn AsyncInstrument<f64>| {
                let now = of.figures().into_iter().find(|now| now.name() == shown);
                now.iter().for_each(|now| observer.observe(now.value(), std::slice::from_ref(&by)));
            };
            if figure.only_rises() {
                let counter = meter.f64_observable_counter(shown).with_description(figure.help());
                counter.with_callback(observe).build();
            } else {
                let gauge = meter.f64_observable_gauge(shown).with_description(figure.help());
                gauge.with_callback(observe).build();
            }
        }
    }

    /// Reports what has not been reported, and ends the exporters' threads.
    pub fn stop(&self) {
        self.turns.stop();
        // What cannot be reported now never will be.
        let _ = self.meters.shutdown();
    }
}

/// What the spans and metrics are said to come from.
const SCOPE: &str = "greenroom";
/// Time for one report to the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_is_none_is_refused_with_the_remedy() {
        for endpoint in ["", "collector:4318", "https://collector:4318", "http://"] {
            let error = Telemetry::start(Settings::new(endpoint)).err().expect("it is none");
            assert!(error.to_string().contains("http://HOST:4318"), "{error}");
        }
    }
}
