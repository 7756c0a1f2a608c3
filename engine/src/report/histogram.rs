//! A histogram of the engine as an event shows it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::Serialize;

use crate::measure::histogram::Durations;
use crate::measure::opened::Opened;

/// A histogram, with its V2 compressed encoding in base64.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistogramReport {
    pub unit: String,
    pub count: u64,
    pub mean_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Samples above an hour, recorded as an hour.
    pub saturated: u64,
    pub v2: String,
}

impl HistogramReport {
    pub fn new<const DIGITS: u8>(durations: &Durations<DIGITS>) -> Option<Self> {
        let histogram = durations.filled()?;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .ok()?;
        Some(Self {
            unit: "ns".to_owned(),
            count: durations.count(),
            mean_ns: durations.mean_ns()?,
            min_ns: durations.min_ns()?,
            max_ns: durations.max_ns()?,
            saturated: durations.saturated(),
            v2: BASE64.encode(bytes),
        })
    }

    /// Of the response times, where connections were opened for requests.
    pub fn response_time(opened: &Opened, service_time: &Durations) -> Option<Self> {
        Self::new(&opened.response_time(service_time)?)
    }
}
