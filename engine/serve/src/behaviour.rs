//! What the server is asked to do. [`Settings`] may differ between request targets
//! (`/?delay=150ms`), [`Behaviour`] holds for the whole process. Options and query keys have the
//! same names and values.

use bytes::Bytes;

use super::curves::{AppliesTo, Slowdown, Stall, Warmup};
use super::random::{Outcome, Shares};
use super::values::{self, Delay, Fields};

/// Larger bodies are taken for a typing error.
const BODY_LIMIT_BYTES: u64 = 1 << 40;
/// A line of 64 bytes that bodies of a given length repeat.
const PATTERN: &[u8; 64] = b"The reference server repeats this line of sixty-four characters\n";
const PATTERNS: usize = 1024;
/// Longest piece of a body.
pub const PIECE_BYTES: u64 = 64 * 1024;
/// Of a body that repeats the pattern, every piece is a part of this.
static REPEATED: [[u8; 64]; PATTERNS + 1] = [*PATTERN; PATTERNS + 1];

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The pattern, repeated up to so many bytes.
    Pattern(u64),
    Bytes(Bytes),
}

impl Content {
    pub fn length(&self) -> u64 {
        match self {
            Self::Pattern(length) => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes `from..to`, which must lie within the body and be at most 64 KiB.
    pub fn piece(&self, from: u64, to: u64) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes.slice(from as usize..to as usize),
            Self::Pattern(_) => {
                let begin = (from % PATTERN.len() as u64) as usize;
                let bytes = REPEATED.as_flattened();
                Bytes::from_static(&bytes[begin..begin + (to - from) as usize])
            }
        }
    }
}

/// When the connection is closed after a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Closing {
    #[default]
    Never,
    /// With `Connection: close`.
    Announced,
    /// Unannounced.
    Silent,
}

/// How requests of one target are answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub status: u16,
    pub body: Content,
    pub content_type: String,
    pub delay: Delay,
    pub work_ns: u64,
    pub shares: Shares,
    pub error_status: u16,
    /// Errors skip the queue, the work and the delay.
    pub errors_fast: bool,
    pub drip_ns: Option<u64>,
    pub chunked: bool,
    pub closing: Closing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            status: 200,
            body: Content::Pattern(64),
            content_type: "text/plain".to_owned(),
            delay: Delay::None,
            work_ns: 0,
            shares: Shares::default(),
            error_status: 503,
            errors_fast: false,
            drip_ns: None,
            chunked: false,
            closing: Closing::Never,
        }
    }
}

impl Settings {
    /// Sets the option or query key `key` to `value`. `Ok(false)`: there is no such key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "status" => self.status = status(value)?,
            "body-bytes" | "bytes" => {
                self.body = Content::Pattern(values::whole(value, 0..=BODY_LIMIT_BYTES, key)?)
            }
            "content-type" | "type" => self.content_type = content_type(value)?,
            "delay" => self.delay = values::delay(value)?,
            "work" => self.work_ns = values::duration_ns(value)?,
            "drip" => self.drip_ns = Some(values::positive_duration_ns(value)?),
            "chunked" => self.chunked = values::flag(value)?,
            "close" => {
                self.closing = match value {
                    "" | "announced" => Closing::Announced,
                    "silent" => Closing::Silent,
                    "no" => Closing::Never,
                    _ => {
                        return Err(format!(
                            "close={value} is unknown: write announced, silent or no"
                        ));
                    }
                }
            }
            "errors" => self.set_errors(value)?,
            fault => {
                let mut shares = self.shares;
                if !shares.set(fault, 0.0) {
                    return Ok(false);
                }
                shares.set(fault, values::lone_share(value)?);
                self.shares = shares;
            }
        }
        Ok(true)
    }

    /// `share=0.02[,status=503][,fast=yes]`, or the bare share.
    fn set_errors(&mut self, value: &str) -> Result<(), String> {
        if !value.contains('=') {
            self.shares.set("errors", values::share(value)?);
            return Ok(());
        }
        let mut fields = Fields::parse(value, &["share", "status", "fast"])?;
        self.shares
            .set("errors", values::share(fields.need("share")?)?);
        if let Some(code) = fields.take("status") {
            self.error_status = status(code)?;
        }
        self.errors_fast = fields.take("fast").map_or(Ok(false), values::flag)?;
        Ok(())
    }

    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<(), String> {
        if self.shares.sum() > 1.0 + 1e-9 {
            return Err(format!(
                "the shares of all faults add up to {}, expected at most 1",
                self.shares.sum()
            ));
        }
        let bodiless = self.body.length() == 0 || !has_body(self.status);
        if self.shares.of(Outcome::Truncate) > 0.0 && bodiless {
            return Err(
                "truncate needs a body, expected a status that has one and at least 1 byte"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Whether responses of this status have a body at all.
pub fn has_body(status: u16) -> bool {
    status >= 200 && status != 204 && status != 304
}

fn status(text: &str) -> Result<u16, String> {
    values::whole(text, 200..=599, "status").map(|code| code as u16)
}

fn content_type(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 200 || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
    {
        return Err(format!(
            "'{}' is not a content type: write e.g. application/json",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// What holds for the whole process.
#[derive(Debug, Clone)]
pub struct Behaviour {
    pub settings: Settings,
    pub stall: Option<Stall>,
    /// Requests per connection, after which it is closed.
    pub close_after: Option<(u32, Closing)>,
    pub workers: Option<u32>,
    pub warmup: Option<Warmup>,
    pub slowdown: Option<Slowdown>,
    /// Factor of all work and delays of this process, drawn once at the start.
    pub start_factor: f64,
    pub seed: u64,
}

impl Behaviour {
    /// The factor of work, so long after the start.
    pub fn work_factor(&self, elapsed_ns: u64) -> f64 {
        self.factor(elapsed_ns, AppliesTo::to_work)
    }

    /// The factor of delays, so long after the start. `tail`: of one that is the high one of a
    /// bimodal.
    pub fn delay_factor(&self, elapsed_ns: u64, tail: bool) -> f64 {
        self.factor(elapsed_ns, |of| of.to_delay(tail))
    }

    fn factor(&self, elapsed_ns: u64, applies: impl Fn(AppliesTo) -> bool) -> f64 {
        let warmup = self.warmup.filter(|curve| applies(curve.of));
        let slowdown = self.slowdown.filter(|curve| applies(curve.of));
        self.start_factor
            * warmup.map_or(1.0, |curve| curve.factor(elapsed_ns))
            * slowdown.map_or(1.0, |curve| curve.factor(elapsed_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(key: &str, value: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        match settings.set(key, value) {
            Ok(true) => settings.check().map(|()| settings),
            Ok(false) => Err(format!("unknown {key}")),
            Err(message) => Err(message),
        }
    }

    #[test]
    fn every_key_sets_its_setting() {
        assert_eq!(with("status", "404").unwrap().status, 404);
        assert_eq!(with("bytes", "1024").unwrap().body, Content::Pattern(1024));
        assert_eq!(
            with("type", "application/json").unwrap().content_type,
            "application/json"
        );
        assert_eq!(
            with("delay", "exp:1ms").unwrap().delay,
            Delay::Exponential { mean_ns: 1_000_000 }
        );
        assert_eq!(with("work", "50us").unwrap().work_ns, 50_000);
        assert_eq!(with("drip", "1ms").unwrap().drip_ns, Some(1_000_000));
        assert!(with("chunked", "").unwrap().chunked);
        assert_eq!(with("close", "silent").unwrap().closing, Closing::Silent);
        let errors = with("errors", "share=0.02,status=500,fast=yes").unwrap();
        assert_eq!((errors.error_status, errors.errors_fast), (500, true));
        for fault in [
            "errors",
            "truncate",
            "wrong-body",
            "reset",
            "garbage",
            "no-answer",
            "header-endless",
        ] {
            assert!(
                (with(fault, "share=0.5").unwrap().shares.sum() - 0.5).abs() < 1e-12,
                "{fault}"
            );
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (key, value) in [
            ("status", "100"),
            ("status", "600"),
            ("bytes", "-1"),
            ("bytes", "1e3"),
            ("type", "a\r\nb"),
            ("delay", "-1ms"),
            ("work", "50"),
            ("drip", "0ms"),
            ("chunked", "maybe"),
            ("close", "later"),
            ("errors", "share=2"),
            ("errors", "share=0.1,status=42"),
            ("errors", "share=0.1,color=red"),
            ("errors", "share=0.1,fast=perhaps"),
            ("reset", "share=1.5"),
            ("unheard-of", "1"),
        ] {
            assert!(with(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let mut settings = Settings::default();
        settings.shares.set("reset", 0.6);
        settings.shares.set("garbage", 0.6);
        assert!(settings.check().unwrap_err().contains("add up to 1.2"));
        let mut settings = Settings {
            body: Content::Pattern(0),
            ..Settings::default()
        };
        settings.shares.set("truncate", 0.1);
        assert!(settings.check().is_err());
    }

    #[test]
    fn bodies_repeat_the_pattern() {
        let piece = Content::Pattern(130).piece(60, 130);
        assert_eq!(piece.len(), 70);
        assert_eq!(&piece[..8], b"ers\nThe ");
        let bytes = Content::Bytes(Bytes::from_static(b"abcdef"));
        assert_eq!(bytes.piece(2, 4), "cd");
    }

    #[test]
    fn curves_multiply_what_they_are_told_to() {
        let behaviour = Behaviour {
            settings: Settings::default(),
            stall: None,
            close_after: None,
            workers: None,
            warmup: Some(Warmup::parse("from=10,over=60s").unwrap()),
            slowdown: Some(Slowdown::parse("per-minute=1,of=delay").unwrap()),
            start_factor: 2.0,
            seed: 1,
        };
        assert!((behaviour.work_factor(0) - 20.0).abs() < 1e-9);
        assert!((behaviour.delay_factor(0, false) - 2.0).abs() < 1e-9);
        assert!((behaviour.work_factor(60_000_000_000) - 2.0).abs() < 1e-9);
        assert!((behaviour.delay_factor(60_000_000_000, false) - 4.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_setting_makes_the_reader_panic(key in "[a-z-]{0,16}", value in "\\PC{0,30}") {
            let _ = with(&key, &value);
        }

        #[test]
        fn a_body_is_the_same_however_it_is_cut(length in 1u64..1000, cut in 0u64..1000) {
            let body = Content::Pattern(length);
            let cut = cut.min(length);
            let parts = [body.piece(0, cut), body.piece(cut, length)].concat();
            prop_assert_eq!(parts, body.piece(0, length));
        }
    }
}
