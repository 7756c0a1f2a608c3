//! The counters of a run or of its window as an event shows them, and their making.

use std::collections::BTreeMap;

use rustls::{CipherSuite, ProtocolVersion};
use schemars::JsonSchema;
use serde::Serialize;

use super::histogram::HistogramReport;
use super::http2::Http2Report;
use crate::measure::addresses::AddressFigures;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::Edges;
use crate::measure::user_time::LifePart;
use crate::net::address::Address;
use crate::tls::{PROTOCOLS, Secured};
use crate::units::{seconds, signed_seconds};

/// Responses that are listed one by one.
const RESPONSES_LISTED: usize = 32;

/// The counters of the whole run or of the window.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CounterReport {
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub abandoned: u64,
    pub errors: BTreeMap<ErrorKind, u64>,
    /// In words, the first reason found, of the kinds of error that have one.
    pub error_reasons: BTreeMap<ErrorKind, String>,
    /// The head of a response as it came, the first one of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_head: Option<String>,
    pub status: BTreeMap<u16, u64>,
    pub answers: Vec<ResponseCount>,
    pub answers_other: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections_opened: u64,
    pub connections_closed_by_server: u64,
    pub connections_closed_by_client: u64,
    /// Of both: the server's end was seen before the client closed, so that the port in TIME_WAIT is
    /// the server's. Not counted with HTTP/2.
    pub connections_closed_first_by_server: u64,
    pub connect_attempts: u64,
    /// Connections and requests by address of the target.
    pub addresses: Vec<AddressReport>,
    pub tls_handshakes: u64,
    pub tls_resumptions: u64,
    /// What was agreed on in the handshakes, and how often.
    pub tls_agreed: Vec<TlsAgreed>,
    /// From the attempt to connect to the connection, of connections that were opened.
    pub connect_time: Option<HistogramReport>,
    /// From the connection to the end of the TLS handshake; never part of a service time.
    pub tls_time: Option<HistogramReport>,
    pub service_time_sum_s: f64,
    /// Σ time in flight of requests that ended without a response, timeouts included.
    pub lost_time_sum_s: f64,
    pub in_flight_integral_s: f64,
    /// Σ time since their sends of the requests in flight when the span began, and when it ended.
    pub in_flight_age_open_s: f64,
    pub in_flight_age_close_s: f64,
    /// The time of all users, clipped to the span: together `users_integral_s`. Residence (from a
    /// send to the end of its last response), think times and pauses.
    pub clipped_cycle_s: f64,
    /// From the begin of connecting, TLS included, until a request could be sent.
    pub clipped_connect_s: f64,
    /// The client's own time before a send: see `turnaround`.
    pub clipped_turnaround_s: f64,
    /// After a failed attempt to connect.
    pub clipped_back_off_s: f64,
    /// From the end of what a user did before (its last response, its think time, its connecting) to
    /// its next send; of the sends in the span.
    pub turnaround_sum_s: f64,
    pub turnaround_count: u64,
    pub turnaround: Option<HistogramReport>,
    pub users: u64,
    /// ∫ users dt, from the change of their number alone.
    pub users_integral_s: f64,
    pub think_drawn_sum_s: f64,
    pub think_actual_sum_s: f64,
    pub think_count: u64,
    /// Actual less drawn; `null` without think times.
    pub think_overshoot: Option<HistogramReport>,
    pub eaddrnotavail: u64,
    pub emfile: u64,
    /// How often the client's kernel refused submissions (io_uring: EBUSY, EAGAIN), which were
    /// retried: a delay of the client.
    pub submissions_put_off: u64,
    /// Cookies dropped: longer than 4 KiB, or evicted as the oldest (more than 180, or 64 KiB, per user).
    pub cookies_dropped: u64,
    /// Open load: requests that became due.
    pub offered: Option<u64>,
    /// Open load: requests that were due for more than 10 ms at the end and not sent, or whose
    /// deadline had passed before they could be.
    pub due_unsent: Option<u64>,
    /// Open load: arrivals that found no place.
    pub blocked: Option<u64>,
    /// Open load of users who walk: those who found a place.
    pub sessions_begun: Option<u64>,
    /// Those of them who came to the end of their scenario.
    pub sessions_completed: Option<u64>,
    /// Only of HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Report>,
}

/// What went to one address of the target.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AddressReport {
    pub address: String,
    pub connect_attempts: u64,
    pub connections_opened: u64,
    pub sent: u64,
}

impl AddressReport {
    fn new(address: &Address, figures: AddressFigures) -> Self {
        Self {
            address: address.to_string(),
            connect_attempts: figures.connect_attempts,
            connections_opened: figures.connections_opened,
            sent: figures.sent,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct TlsAgreed {
    pub version: String,
    pub cipher_suite: String,
    /// `null` when the server chose no protocol.
    pub alpn: Option<String>,
    pub count: u64,
}

impl TlsAgreed {
    fn new(agreed: Secured, count: u64) -> Self {
        let version = match ProtocolVersion::from(agreed.version) {
            ProtocolVersion::TLSv1_2 => "1.2".to_owned(),
            ProtocolVersion::TLSv1_3 => "1.3".to_owned(),
            other => format!("{other:?}"),
        };
        Self {
            version,
            cipher_suite: format!("{:?}", CipherSuite::from(agreed.cipher_suite)),
            alpn: usize::from(agreed.alpn)
                .checked_sub(1)
                .and_then(|place| PROTOCOLS.get(place).copied().map(str::to_owned)),
            count,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ResponseCount {
    pub status: u16,
    pub body_bytes: u64,
    pub count: u64,
}

impl CounterReport {
    pub fn new(counters: &Counters, edges: &Edges) -> Self {
        let clipped_s = |part| signed_seconds(edges.user_time.of(part));
        let (answers, answers_other) = counters.responses.most_frequent(RESPONSES_LISTED);
        Self {
            sent: counters.sent,
            completed: counters.completed,
            failed: counters.failed,
            abandoned: counters.abandoned,
            errors: counters.errors().collect(),
            error_reasons: counters.reasons(),
            first_head: counters.first_head.clone(),
            status: counters.responses.by_status(),
            answers: answers
                .into_iter()
                .map(|((status, body_bytes), count)| ResponseCount {
                    status,
                    body_bytes,
                    count,
                })
                .collect(),
            answers_other,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
            connections_opened: counters.connections_opened,
            connections_closed_by_server: counters.connections_closed_by_server,
            connections_closed_by_client: counters.connections_closed_by_client,
            connections_closed_first_by_server: counters.connections_closed_first_by_server,
            connect_attempts: counters.connect_attempts,
            addresses: Vec::new(),
            tls_handshakes: counters.tls_handshakes,
            tls_resumptions: counters.tls_resumptions,
            tls_agreed: counters
                .tls_agreed
                .iter()
                .map(|(agreed, count)| TlsAgreed::new(*agreed, *count))
                .collect(),
            connect_time: HistogramReport::new(&counters.connect_time),
            tls_time: HistogramReport::new(&counters.tls_time),
            service_time_sum_s: seconds(counters.service_time_ns),
            lost_time_sum_s: seconds(counters.lost_time_ns),
            in_flight_integral_s: signed_seconds(counters.in_flight_integral_ns),
            in_flight_age_open_s: signed_seconds(edges.in_flight_age_open_ns),
            in_flight_age_close_s: signed_seconds(edges.in_flight_age_close_ns),
            clipped_cycle_s: clipped_s(LifePart::Cycle),
            clipped_connect_s: clipped_s(LifePart::Connect),
            clipped_turnaround_s: clipped_s(LifePart::Turnaround),
            clipped_back_off_s: clipped_s(LifePart::BackOff),
            turnaround_sum_s: seconds(counters.turnaround_ns),
            turnaround_count: counters.turnaround.count(),
            turnaround: HistogramReport::new(&counters.turnaround),
            users: edges.users,
            users_integral_s: seconds(counters.users_integral_ns),
            think_drawn_sum_s: seconds(counters.think_drawn_ns),
            think_actual_sum_s: seconds(counters.think_actual_ns),
            think_count: counters.think_count,
            think_overshoot: HistogramReport::new(&counters.think_overshoot),
            eaddrnotavail: counters.eaddrnotavail,
            emfile: counters.emfile,
            submissions_put_off: counters.submissions_put_off,
            cookies_dropped: counters.cookies_dropped,
            offered: None,
            due_unsent: None,
            blocked: None,
            sessions_begun: None,
            sessions_completed: None,
            http2: counters.http2.as_deref().map(Http2Report::new),
        }
    }

    /// Fills in what went to each address. `figures` is empty where there is a single one.
    pub fn by_address(&mut self, addresses: &[Address], figures: &[AddressFigures]) {
        let all = AddressFigures {
            connect_attempts: self.connect_attempts,
            connections_opened: self.connections_opened,
            sent: self.sent,
        };
        let report = |(place, address): (usize, &Address)| {
            let figures = figures.get(place).copied();
            AddressReport::new(address, figures.unwrap_or_default())
        };
        self.addresses = match addresses {
            [single] => vec![AddressReport::new(single, all)],
            several => several.iter().enumerate().map(report).collect(),
        };
    }

    /// Fills in what only an open load has. `overdue`: not sent at the end.
    pub fn open_load(&mut self, counters: &Counters, overdue: u64, walks: bool) {
        self.sessions_begun = walks.then_some(counters.sessions_begun);
        self.sessions_completed = walks.then_some(counters.sessions_completed);
        self.offered = Some(counters.offered);
        self.due_unsent = Some(counters.expired + overdue);
        self.blocked = Some(counters.blocked);
    }
}
