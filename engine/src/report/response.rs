//! A response reported whole, for a client that asks once what a server answers.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::captured::CapturedResponse;
use crate::http::response::Response;
use crate::measure::counters::ErrorKind;
use crate::units::ms;

/// Most responses that are reported, and most bytes of their bodies.
const MAX_REPORTED: usize = 1_000;
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// One response; of those that were led on by redirects the last.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResponseReport {
    /// As in the request log.
    pub step_index: usize,
    pub status: u16,
    /// What is not as declared.
    pub error: Option<ErrorKind>,
    /// From the send to the last byte, redirects included.
    pub took_ms: f64,
    pub ended_monotonic_ns: u64,
    /// Whether the server lets the connection stay.
    pub keep_alive: bool,
    pub head: String,
    pub body_bytes: u64,
    /// In base64; `null` when it is too long to be kept.
    pub body: Option<String>,
}

/// The first responses of a run, by their ends.
#[derive(Debug, Default)]
pub struct Responses(Mutex<(Vec<ResponseReport>, usize)>);

impl Responses {
    #[cold]
    pub fn keep(
        &self,
        step_index: usize,
        response: &Response,
        error: Option<ErrorKind>,
        (took_ns, ended_monotonic_ns): (u64, u64),
        seen: &CapturedResponse,
    ) {
        let Ok(mut kept) = self.0.lock() else { return };
        let (responses, bytes) = &mut *kept;
        if responses.len() == MAX_REPORTED {
            return;
        }
        let kept = !seen.too_long && *bytes + seen.body.len() <= MAX_BODY_BYTES;
        *bytes += if kept { seen.body.len() } else { 0 };
        responses.push(ResponseReport {
            step_index,
            status: response.status,
            error,
            took_ms: ms(took_ns),
            ended_monotonic_ns,
            keep_alive: response.keep_alive,
            head: String::from_utf8_lossy(&seen.head).into_owned(),
            body_bytes: response.body_bytes,
            body: kept.then(|| BASE64.encode(&seen.body)),
        });
    }

    pub fn all(&self) -> Vec<ResponseReport> {
        self.0.lock().map(|kept| kept.0.clone()).unwrap_or_default()
    }
}
