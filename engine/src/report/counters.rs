//! The counters of a run or of its window as an event shows them, and their making.

use std::collections::BTreeMap;

use rustls::{CipherSuite, ProtocolVersion};
use schemars::JsonSchema;
use serde::Serialize;

use super::histogram::HistogramReport;
use crate::measure::addresses::AddressFigures;
use crate::measure::counters::{Counters, ErrorKind};
use crate::measure::edges::Edges;
use crate::measure::http2::Http2Figures;
use crate::measure::responses::{ResponseCounts, StatusAndLength};
use crate::measure::user_time::LifePart;
use crate::net::address::Address;
use crate::tls::{PROTOCOLS, Secured};
use crate::units::{seconds, signed_seconds};

/// Responses that are listed one by one.
const RESPONSES_LISTED: usize = 32;

report! {
    /// The counters of the whole run or of the window.
    CounterReport(counters: &Counters, edges: &Edges) {
        sent: u64 = counters.sent,
        completed: u64 = counters.completed,
        failed: u64 = counters.failed,
        abandoned: u64 = counters.abandoned,
        errors: BTreeMap<ErrorKind, u64> = counters.errors.clone(),
        /// In words, the first reason found, of the kinds of error that have one.
        error_reasons: BTreeMap<ErrorKind, String> = counters.reasons(),
        /// The head of a response as it came, the first one of a thread.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_head: Option<String> = counters.first_head.clone(),
        status: BTreeMap<u16, u64> = counters.responses.by_status(),
        answers: Vec<ResponseCount> = listed(&counters.responses).0,
        answers_other: u64 = listed(&counters.responses).1,
        bytes_sent: u64 = counters.connections.bytes_sent,
        bytes_received: u64 = counters.connections.bytes_received,
        connections_opened: u64 = counters.connections.opened,
        connections_closed_by_server: u64 = counters.connections.closed_by_server,
        connections_closed_by_client: u64 = counters.connections.closed_by_client,
        /// Of both: the server's end was seen before the client closed, so that the port in TIME_WAIT is
        /// the server's. Not counted with HTTP/2.
        connections_closed_first_by_server: u64 = counters.connections.closed_first_by_server,
        connect_attempts: u64 = counters.connections.attempts,
        /// Connections and requests by address of the target.
        addresses: Vec<AddressReport> = Vec::new(),
        tls_handshakes: u64 = counters.tls_handshakes,
        tls_resumptions: u64 = counters.tls_resumptions,
        /// What was agreed on in the handshakes, and how often.
        tls_agreed: Vec<TlsAgreed> = counters
            .tls_agreed
            .iter()
            .map(|(agreed, count)| TlsAgreed::new(*agreed, *count))
            .collect(),
        /// From the attempt to connect to the connection, of connections that were opened.
        connect_time: Option<HistogramReport> = HistogramReport::new(&counters.connect_time),
        /// From the connection to the end of the TLS handshake; never part of a service time.
        tls_time: Option<HistogramReport> = HistogramReport::new(&counters.tls_time),
        service_time_sum_s: f64 = seconds(counters.service_time_ns),
        /// Σ time in flight of requests that ended without a response, timeouts included.
        lost_time_sum_s: f64 = seconds(counters.lost_time_ns),
        in_flight_integral_s: f64 = signed_seconds(counters.in_flight_integral_ns),
        /// Σ time since their sends of the requests in flight when the span began, and when it ended.
        in_flight_age_open_s: f64 = signed_seconds(edges.in_flight_age_open_ns),
        in_flight_age_close_s: f64 = signed_seconds(edges.in_flight_age_close_ns),
        /// The time of all users, clipped to the span: together `users_integral_s`. Residence (from a
        /// send to the end of its last response), think times and pauses.
        clipped_cycle_s: f64 = signed_seconds(edges.user_time.of(LifePart::Cycle)),
        /// From the begin of connecting, TLS included, until a request could be sent.
        clipped_connect_s: f64 = signed_seconds(edges.user_time.of(LifePart::Connect)),
        /// The client's own time before a send: see `turnaround`.
        clipped_turnaround_s: f64 = signed_seconds(edges.user_time.of(LifePart::Turnaround)),
        /// After a failed attempt to connect.
        clipped_back_off_s: f64 = signed_seconds(edges.user_time.of(LifePart::BackOff)),
        /// From the end of what a user did before (its last response, its think time, its connecting) to
        /// its next send; of the sends in the span.
        turnaround_sum_s: f64 = seconds(counters.turnaround_ns),
        turnaround_count: u64 = counters.turnaround.count(),
        turnaround: Option<HistogramReport> = HistogramReport::new(&counters.turnaround),
        users: u64 = edges.users,
        /// ∫ users dt, from the change of their number alone.
        users_integral_s: f64 = seconds(counters.users_integral_ns),
        think_drawn_sum_s: f64 = seconds(counters.think_drawn_ns),
        think_actual_sum_s: f64 = seconds(counters.think_actual_ns),
        think_count: u64 = counters.think_count,
        /// Actual less drawn; `null` without think times.
        think_overshoot: Option<HistogramReport> = HistogramReport::new(&counters.think_overshoot),
        eaddrnotavail: u64 = counters.eaddrnotavail,
        emfile: u64 = counters.emfile,
        /// How often the client's kernel refused submissions (io_uring: EBUSY, EAGAIN), which were
        /// retried: a delay of the client.
        submissions_put_off: u64 = counters.submissions_put_off,
        /// Cookies dropped: longer than 4 KiB, or evicted as the oldest (more than 180, or 64 KiB, per user).
        cookies_dropped: u64 = counters.cookies_dropped,
        /// Open load: requests that became due.
        offered: Option<u64> = None,
        /// Open load: requests that were due for more than 10 ms at the end and not sent, or whose
        /// deadline had passed before they could be.
        due_unsent: Option<u64> = None,
        /// Open load: arrivals that found no place.
        blocked: Option<u64> = None,
        /// Open load of users who walk: those who found a place.
        sessions_begun: Option<u64> = None,
        /// Those of them who came to the end of their scenario.
        sessions_completed: Option<u64> = None,
        /// Only of HTTP/2.
        #[serde(skip_serializing_if = "Option::is_none")]
        http2: Option<Box<Http2Figures>> = counters.http2.clone(),
    }
}

report! {
    /// What went to one address of the target.
    AddressReport(on: &Address, figures: AddressFigures) {
        address: String = on.to_string(),
        connect_attempts: u64 = figures.connect_attempts,
        connections_opened: u64 = figures.connections_opened,
        sent: u64 = figures.sent,
    }
}

report! {
    TlsAgreed(agreed: Secured, times: u64) {
        version: String = match ProtocolVersion::from(agreed.version) {
            ProtocolVersion::TLSv1_2 => "1.2".to_owned(),
            ProtocolVersion::TLSv1_3 => "1.3".to_owned(),
            other => format!("{other:?}"),
        },
        cipher_suite: String = format!("{:?}", CipherSuite::from(agreed.cipher_suite)),
        /// `null` when the server chose no protocol.
        alpn: Option<String> = usize::from(agreed.alpn)
            .checked_sub(1)
            .and_then(|place| PROTOCOLS.get(place).copied().map(str::to_owned)),
        count: u64 = times,
    }
}

report! {
    ResponseCount(response: StatusAndLength, times: u64) {
        status: u16 = response.0,
        body_bytes: u64 = response.1,
        count: u64 = times,
    }
}

/// The most frequent responses, and how many there were of others.
fn listed(responses: &ResponseCounts) -> (Vec<ResponseCount>, u64) {
    let (listed, others) = responses.most_frequent(RESPONSES_LISTED);
    let listed = listed.into_iter();
    (
        listed
            .map(|(response, count)| ResponseCount::new(response, count))
            .collect(),
        others,
    )
}

impl CounterReport {
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
