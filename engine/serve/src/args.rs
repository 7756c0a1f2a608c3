//! The options of `prony-engine serve` for clap. Values stay text here; [`super::options`] reads
//! them, so that every invalid one is refused in one place and with one sentence.

use std::path::PathBuf;

/// Answer fast, late or wrong, as told; count requests and responses.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub(super) server: Server,
    #[command(flatten)]
    pub(super) response: Response,
    #[command(flatten)]
    pub(super) time: Time,
    #[command(flatten)]
    pub(super) faults: Faults,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct Server {
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:0]
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<String>,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Speak TLS 1.2 and 1.3; needs --cert and --key
    #[arg(long)]
    pub tls: bool,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// A full handshake for every TLS connection
    #[arg(long)]
    pub no_resumption: bool,
    /// Speak HTTP/2 beside HTTP/1.1: with --tls by ALPN, otherwise by prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// HTTP/2: streams at once per connection [default: 10000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub streams: Option<String>,
    /// HTTP/2: what a client may send on a stream before it is given more [default: 1048576]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub window_bytes: Option<String>,
    /// Write the raw bytes of the requests to a file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Longest record, in bytes [default: 1048576]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub record_bytes: Option<String>,
    /// One pinned thread per CPU, e.g. 0 or 0,2-3 [default: one thread, not pinned]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<String>,
    /// HTTP/1.x from one loop without hyper, which costs the least: no queries, delays or faults
    #[arg(long)]
    pub bare: bool,
    /// Stop when stdin closes
    #[arg(long)]
    pub stdin_guard: bool,
    /// Seed of all random numbers, or `random` [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub seed: Option<String>,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Response")]
pub struct Response {
    /// Length of the body [default: 64]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub body_bytes: Option<String>,
    /// File with the body
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
    /// Content type of the body [default: text/plain]
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Status code [default: 200]
    #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
    pub status: Option<String>,
    /// Send the body in chunks
    #[arg(long)]
    pub chunked: bool,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Time")]
pub struct Time {
    /// none, fixed:150ms, exp:10ms, lognormal:MEDIAN,SIGMA or bimodal:LOW,HIGH,SHARE_OF_HIGH
    #[arg(long, value_name = "DELAY", allow_hyphen_values = true)]
    pub delay: Option<String>,
    /// CPU time per request, e.g. 50us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub work: Option<String>,
    /// Requests in service at once; the others wait in a queue
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub workers: Option<String>,
    /// Stalls of the whole server, every=10s,for=1s, or of one connection in eight:
    /// every=10s,for=1s,connections=1/8
    #[arg(long, value_name = "STALL", allow_hyphen_values = true)]
    pub stall: Option<String>,
    /// A warm-up: more work at the start, falling exponentially,
    /// from=10,over=60s[,of=work|delay|both|tail]
    #[arg(long, value_name = "CURVE", allow_hyphen_values = true)]
    pub warmup: Option<String>,
    /// A slow-down: more work as time goes by, per-minute=0.05[,after=30s]
    /// [,of=work|delay|both|tail]
    #[arg(long, value_name = "CURVE", allow_hyphen_values = true)]
    pub slowdown: Option<String>,
    /// Some processes are slower for life: share=0.5,factor=1.2 (drawn once from the seed)
    #[arg(long, value_name = "LOTTERY", allow_hyphen_values = true)]
    pub start_lottery: Option<String>,
    /// Send the response a byte at a time, one per TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub drip: Option<String>,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Faults")]
pub struct Faults {
    /// Answer with an error: share=0.02[,status=503][,fast=yes] (fast: without queue, work and
    /// delay)
    #[arg(long, value_name = "ERRORS", allow_hyphen_values = true)]
    pub errors: Option<String>,
    /// Body shorter than declared, then close: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub truncate: Option<String>,
    /// 200 with an error page: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub wrong_body: Option<String>,
    /// Reset the connection instead of answering: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub reset: Option<String>,
    /// Answer with bytes that are not HTTP: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub garbage: Option<String>,
    /// Read the request and never answer: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub no_answer: Option<String>,
    /// Respond with a head that never ends: share=0.01
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub header_endless: Option<String>,
    /// Close the connection after N responses, announced with `Connection: close`
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub close_after: Option<String>,
    /// Close the connection after N responses, unannounced
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub close_silently_after: Option<String>,
    /// Close after every response, announced (the same as --close-after 1)
    #[arg(long)]
    pub ignore_keep_alive: bool,
}
