//! Reads the command line of `prony-engine serve`, or refuses it with one sentence. It starts
//! nothing.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use rustls::ServerConfig;

use super::args::{Args, Faults, Server};
use super::behaviour::{Behaviour, Closing, Content, Settings};
use super::curves::{AppliesTo, Slowdown, Stall, Warmup};
use super::listen::ListenAddress;
use super::random::Random;
use super::recorder::Recorder;
use super::tls;
use super::values::{self, Delay, Fields};

const DEFAULT_ADDRESS: &str = "127.0.0.1:0";
const DEFAULT_RECORD_BYTES: u64 = 1 << 20;
/// The largest that RFC 9113 allows.
const MAX_WINDOW_BYTES: u32 = (1 << 31) - 1;
const MAX_WORKERS: u32 = 1_000_000;
/// What one connection may take of the server's memory is bounded by its streams.
const MAX_STREAMS: u32 = 1_000_000;

/// What a client of HTTP/2 may do at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Limits {
    pub streams: u32,
    pub window_bytes: u32,
}

impl Default for Http2Limits {
    fn default() -> Self {
        Self {
            streams: 10_000,
            window_bytes: 1 << 20,
        }
    }
}
const DEFAULT_SEED: u64 = 1;
const BARE_BODY_BYTES: u64 = 64 << 20;
const BARE_ONLY: &str = "--bare has no delays, faults, chunks or HTTP/2: of Response, Time and Faults give --body-bytes, \
                         --body-file, --content-type, --status, --close-after and --ignore-keep-alive only";
/// `--start-lottery` draws from a stream of its own, independent of the requests'.
const LOTTERY_STREAM: u64 = 1 << 10;

/// The command line, checked.
#[derive(Debug)]
pub struct Options {
    pub listen: ListenAddress,
    /// One thread each; `None` is not pinned.
    pub cpus: Vec<Option<usize>>,
    pub stdin_guard: bool,
    pub bare: bool,
    pub tls: Option<Arc<ServerConfig>>,
    pub http2: Option<Http2Limits>,
    pub recorder: Option<Recorder>,
    pub behaviour: Behaviour,
}

/// Puts the option's name before the reason why its value is refused.
fn named<T>(option: &str, value: &str, read: Result<T, String>) -> Result<T, String> {
    read.map_err(|reason| format!("--{option} {value}: {reason}"))
}

fn read<T>(
    option: &str,
    value: &Option<String>,
    reader: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let read = |value: &String| named(option, value, reader(value));
    value.as_ref().map(read).transpose()
}

/// A whole number from 1 on.
fn number(option: &str, value: &Option<String>, most: u32) -> Result<Option<u32>, String> {
    let reader = |text: &str| values::whole(text, 1..=u64::from(most), "the number");
    Ok(read(option, value, reader)?.map(|number| number as u32))
}

impl Args {
    /// The checked options, or one sentence that says what is invalid.
    pub fn options(&self) -> Result<Options, String> {
        let seed = self.read_seed()?;
        let settings = self.read_settings()?;
        let behaviour = Behaviour {
            stall: read("stall", &self.time.stall, Stall::parse)?,
            close_after: self.read_close_after()?,
            workers: number("workers", &self.time.workers, MAX_WORKERS)?,
            warmup: read("warmup", &self.time.warmup, Warmup::parse)?,
            slowdown: read("slowdown", &self.time.slowdown, Slowdown::parse)?,
            start_factor: self.draw_start_factor(seed)?,
            settings,
            seed,
        };
        check_curves(&behaviour)?;
        let cpus = read("cpus", &self.server.cpus, cpu_list)?;
        if self.server.bare {
            self.check_bare(&behaviour)?;
        }
        Ok(Options {
            bare: self.server.bare,
            listen: self.read_listen_address()?,
            cpus: cpus.map_or(vec![None], |cpus| cpus.into_iter().map(Some).collect()),
            stdin_guard: self.server.stdin_guard,
            tls: self.read_tls()?,
            http2: self.read_http2()?,
            recorder: self.create_recorder()?,
            behaviour,
        })
    }

    /// Refuses what the bare loop does not do.
    fn check_bare(&self, behaviour: &Behaviour) -> Result<(), String> {
        let (settings, usual) = (&behaviour.settings, Settings::default());
        let plain = Settings {
            status: settings.status,
            body: settings.body.clone(),
            content_type: settings.content_type.clone(),
            ..usual
        };
        let is_silent = matches!(behaviour.close_after, Some((_, Closing::Silent)));
        let is_slow = behaviour.stall.is_some() || behaviour.workers.is_some();
        if *settings != plain || is_silent || is_slow || self.server.http2 {
            return Err(BARE_ONLY.to_owned());
        }
        if settings.body.length() > BARE_BODY_BYTES {
            return Err("--bare keeps its body in memory: give at most 64 MiB".to_owned());
        }
        Ok(())
    }

    fn read_listen_address(&self) -> Result<ListenAddress, String> {
        match (&self.server.listen, &self.server.unix) {
            (Some(_), Some(_)) => {
                Err("--listen and --unix contradict each other: give one of them".to_owned())
            }
            (None, Some(path)) => Ok(ListenAddress::Unix(path.clone())),
            (Some(address), None) => ListenAddress::tcp(address),
            (None, None) => ListenAddress::tcp(DEFAULT_ADDRESS),
        }
    }

    fn read_tls(&self) -> Result<Option<Arc<ServerConfig>>, String> {
        let Server { http2, .. } = self.server;
        let resumption = !self.server.no_resumption;
        match (self.server.tls, &self.server.cert, &self.server.key) {
            (true, Some(cert), Some(key)) => tls::load(cert, key, resumption, http2).map(Some),
            (true, ..) => Err("--tls needs --cert FILE and --key FILE (PEM)".to_owned()),
            (false, None, None) if resumption => Ok(None),
            (false, ..) => {
                Err("--cert, --key and --no-resumption mean nothing without --tls".to_owned())
            }
        }
    }

    fn read_http2(&self) -> Result<Option<Http2Limits>, String> {
        let streams = number("streams", &self.server.streams, MAX_STREAMS)?;
        let window = number("window-bytes", &self.server.window_bytes, MAX_WINDOW_BYTES)?;
        if !self.server.http2 {
            return match streams.or(window) {
                None => Ok(None),
                Some(_) => {
                    Err("--streams and --window-bytes mean nothing without --http2".to_owned())
                }
            };
        }
        let usual = Http2Limits::default();
        Ok(Some(Http2Limits {
            streams: streams.unwrap_or(usual.streams),
            window_bytes: window.unwrap_or(usual.window_bytes),
        }))
    }

    fn create_recorder(&self) -> Result<Option<Recorder>, String> {
        let whole = |text: &str| values::whole(text, 1..=1 << 40, "the length");
        let limit = read("record-bytes", &self.server.record_bytes, whole)?;
        match (&self.server.record, limit) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("--record-bytes means nothing without --record FILE".to_owned()),
            (Some(path), limit) => {
                Recorder::create(path, limit.unwrap_or(DEFAULT_RECORD_BYTES)).map(Some)
            }
        }
    }

    fn read_seed(&self) -> Result<u64, String> {
        match self.server.seed.as_deref() {
            None => Ok(DEFAULT_SEED),
            // The standard library seeds its hashers from the system's randomness.
            Some("random") => Ok(RandomState::new().build_hasher().finish()),
            Some(text) => text.parse().map_err(|_| {
                format!("--seed {text} is not a seed: give a whole number from 0 on, or random")
            }),
        }
    }

    fn read_settings(&self) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let options = [
            ("body-bytes", &self.response.body_bytes),
            ("content-type", &self.response.content_type),
            ("status", &self.response.status),
            ("delay", &self.time.delay),
            ("work", &self.time.work),
            ("drip", &self.time.drip),
            ("errors", &self.faults.errors),
            ("truncate", &self.faults.truncate),
            ("wrong-body", &self.faults.wrong_body),
            ("reset", &self.faults.reset),
            ("garbage", &self.faults.garbage),
            ("no-answer", &self.faults.no_answer),
            ("header-endless", &self.faults.header_endless),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                named(option, value, settings.set(option, value))?;
            }
        }
        settings.chunked = self.response.chunked;
        if let Some(file) = &self.response.body_file {
            if self.response.body_bytes.is_some() {
                return Err(
                    "--body-bytes and --body-file contradict each other: give one of them"
                        .to_owned(),
                );
            }
            let bytes = std::fs::read(file).map_err(|error| {
                format!("--body-file {} cannot be read: {error}", file.display())
            })?;
            settings.body = Content::Bytes(bytes.into());
        }
        settings.check()?;
        Ok(settings)
    }

    fn read_close_after(&self) -> Result<Option<(u32, Closing)>, String> {
        let Faults { close_after, .. } = &self.faults;
        let silently_after = &self.faults.close_silently_after;
        let once = self.faults.ignore_keep_alive.then(|| "1".to_owned());
        let given = [
            ("close-after", close_after, Closing::Announced),
            ("close-silently-after", silently_after, Closing::Silent),
            ("ignore-keep-alive", &once, Closing::Announced),
        ];
        let mut chosen = None;
        for (option, value, closing) in given {
            let Some(limit) = number(option, value, u32::MAX)? else {
                continue;
            };
            if chosen.replace((limit, closing)).is_some() {
                return Err("--close-after, --close-silently-after and --ignore-keep-alive contradict each other: \
                            give one of them"
                    .to_owned());
            }
        }
        Ok(chosen)
    }

    fn draw_start_factor(&self, seed: u64) -> Result<f64, String> {
        let drawn = read("start-lottery", &self.time.start_lottery, lottery)?;
        let is_slow = |share: f64| Random::new(seed, LOTTERY_STREAM).chance(share);
        Ok(drawn.map_or(
            1.0,
            |(share, factor)| if is_slow(share) { factor } else { 1.0 },
        ))
    }
}

fn lottery(text: &str) -> Result<(f64, f64), String> {
    let mut fields = Fields::parse(text, &["share", "factor"])?;
    let share = values::share(fields.need("share")?)?;
    let factor = values::number_from(fields.need("factor")?, 0.0, "factor")?;
    Ok((share, factor))
}

/// A curve that multiplies nothing is a mistake that nobody would notice.
fn check_curves(behaviour: &Behaviour) -> Result<(), String> {
    let curves = [
        ("warmup", behaviour.warmup.map(|curve| curve.of)),
        ("slowdown", behaviour.slowdown.map(|curve| curve.of)),
    ];
    for (option, of) in curves {
        let Some(of) = of else { continue };
        if of.to_work() && behaviour.settings.work_ns == 0 && !of.to_delay(false) {
            return Err(format!(
                "--{option} multiplies the work, and there is none: give --work, or of=delay"
            ));
        }
        if of == AppliesTo::Tail && !matches!(behaviour.settings.delay, Delay::Bimodal { .. }) {
            return Err(format!(
                "--{option} of=tail multiplies the high delay of a bimodal: give --delay bimodal:5ms,50ms,0.02"
            ));
        }
        if of.to_delay(false) && behaviour.settings.delay == Delay::None && !of.to_work() {
            return Err(format!(
                "--{option} multiplies the delay, and there is none: give --delay, or of=work"
            ));
        }
    }
    Ok(())
}

/// Reads `0`, `0,2` or `0-3,6`.
fn cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let wanted = || "give CPU numbers and ranges of them, e.g. 0 or 0,2-3".to_owned();
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wanted())?;
        let last: usize = last.trim().parse().map_err(|_| wanted())?;
        if first > last || last >= 4096 {
            return Err(wanted());
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(format!("CPU {cpu} is listed twice"));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use proptest::prelude::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn options(line: &str) -> Result<Options, String> {
        let words = std::iter::once("serve").chain(line.split_whitespace());
        Line::try_parse_from(words)
            .map_err(|error| error.to_string())?
            .args
            .options()
    }

    #[test]
    fn the_options_of_the_contract_are_understood() {
        let options = options(
            "--listen 127.0.0.1:0 --cpus 0,2-3 --body-bytes 10 --content-type text/html --delay exp:10ms \
             --stall every=10s,for=1s --errors share=0.02,status=503 --close-after 5 --truncate share=0.01 \
             --wrong-body share=0.01 --reset share=0.1 --garbage share=0.1 --workers 200 --work 50us \
             --warmup from=10,over=60s --slowdown per-minute=0.05 --drip 1ms --no-answer share=0.1 --chunked \
             --header-endless share=0.1 --seed 7 --stdin-guard",
        )
        .unwrap();
        assert_eq!(options.cpus, [Some(0), Some(2), Some(3)]);
        assert_eq!(options.behaviour.close_after, Some((5, Closing::Announced)));
        assert_eq!(
            (options.behaviour.workers, options.behaviour.seed),
            (Some(200), 7)
        );
        assert!(
            options.behaviour.stall.is_some()
                && options.behaviour.warmup.is_some()
                && options.behaviour.slowdown.is_some()
        );
        assert_eq!(options.behaviour.settings.work_ns, 50_000);
        assert!((options.behaviour.settings.shares.sum() - 0.44).abs() < 1e-9);
    }

    #[test]
    fn nothing_given_is_a_fast_server_on_one_thread() {
        let options = options("").unwrap();
        assert_eq!(options.cpus, [None]);
        assert_eq!(options.behaviour.settings, Settings::default());
        assert!(options.behaviour.close_after.is_none() && options.behaviour.workers.is_none());
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence_that_names_the_option() {
        for (line, named) in [
            ("--delay -1ms", "--delay"),
            ("--errors share=2", "--errors"),
            ("--errors rate=0.1", "rate"),
            ("--reset share=-0.1", "--reset"),
            ("--workers 0", "--workers"),
            ("--close-after 0", "--close-after"),
            ("--close-after 2 --ignore-keep-alive", "contradict"),
            ("--cpus 1,1", "--cpus"),
            ("--cpus -1", "--cpus"),
            ("--cpus 3-1", "--cpus"),
            ("--seed -1", "--seed"),
            ("--stall every=1s,for=2s", "--stall"),
            ("--warmup from=10,over=60s", "give --work"),
            ("--slowdown per-minute=1,of=delay", "give --delay"),
            ("--slowdown per-minute=1,of=tail", "give --delay bimodal"),
            ("--stall every=2s,for=1s,connections=1/0", "one in eight"),
            ("--truncate share=0.6 --garbage share=0.6", "add up"),
            ("--truncate share=0.6 --body-bytes 0", "truncate"),
            ("--body-bytes -5", "--body-bytes"),
            ("--body-file /does/not/exist", "--body-file"),
            ("--start-lottery share=0.5", "--start-lottery"),
            ("--drip 0ms", "--drip"),
            ("--listen localhost:80", "IP:PORT"),
            ("--listen 127.0.0.1:0 --unix socket", "contradict"),
            ("--tls", "--cert"),
            ("--tls --cert cert.pem", "--key"),
            ("--cert cert.pem", "without --tls"),
            ("--no-resumption", "without --tls"),
            ("--streams 5", "without --http2"),
            ("--http2 --streams 0", "--streams"),
            ("--http2 --window-bytes 2147483648", "--window-bytes"),
            ("--record-bytes 5", "--record"),
            ("--record file --record-bytes 0", "--record-bytes"),
            ("--bare --delay 1ms", "--bare"),
            ("--bare --http2", "--bare"),
            ("--bare --reset share=0.1", "--bare"),
            ("--bare --close-silently-after 1", "--bare"),
            ("--bare --body-bytes 100000000", "--bare"),
        ] {
            let sentence = options(line).unwrap_err();
            assert!(
                sentence.contains(named) && !sentence.contains('\n'),
                "{line}: {sentence}"
            );
        }
    }

    #[test]
    fn the_lottery_is_drawn_from_the_seed() {
        let factors: Vec<f64> = (0..200)
            .map(|seed| {
                options(&format!(
                    "--start-lottery share=0.5,factor=1.2 --seed {seed}"
                ))
                .unwrap()
                .behaviour
                .start_factor
            })
            .collect();
        let slow = factors.iter().filter(|factor| **factor > 1.1).count();
        assert!((70..130).contains(&slow), "{slow} of 200 starts are slow");
        let again = options("--start-lottery share=0.5,factor=1.2 --seed 17")
            .unwrap()
            .behaviour
            .start_factor;
        assert!((again - factors[17]).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn no_cpu_list_panics(text in "[0-9,-]{0,12}") {
            let _ = cpu_list(&text);
        }
    }
}
