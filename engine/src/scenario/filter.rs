//! How a rendered value is written so that it cannot break what stands around it. Bytes in, bytes out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prony_common::digests;
use serde_json::Value;

/// Where a rendered value goes: what could break the frame around it is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// Blanks, control characters and what is not ASCII are written as `%xx`.
    Path,
    /// Control characters become blanks: a value cannot begin another header.
    Header,
    Body,
}

/// What a placeholder asks for beside its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Of a value as JSON, the part at this pointer (RFC 6901), as JSON; `null` where there is none.
    At(String),
    /// Of a value as JSON, the text without its quotes; what is no text stays as it is.
    Text,
    /// Escaped as the inside of a JSON string.
    Json,
    /// Everything but unreserved characters as `%xx` (RFC 3986, section 2.3).
    Url,
    /// As a browser writes a field of a form: a blank as `+`, everything but letters, digits and
    /// `*-._` as `%xx` (WHATWG URL, application/x-www-form-urlencoded).
    Form,
    /// In capitals, of all of Unicode.
    Upper,
    /// In small letters.
    Lower,
    /// Its bytes in base64 (RFC 4648, section 4).
    Base64,
    /// Of a number, zeros before it until it has so many digits.
    Digits(usize),
    /// Of a whole number, so much more; any other text stays as it is.
    Plus(i64),
    /// The digest of its bytes by this algorithm, in hexadecimal.
    Digest(&'static str),
    /// As segments of a path behind a slash: no slash first, none after another, before any query; `true`: with
    /// a slash at its end, unless it is empty.
    Segments(bool),
}

/// The longest number that is filled up with zeros.
const MAX_DIGITS: usize = 64;
const DIGESTS: [&str; 5] = ["md5", "sha1", "sha256", "sha384", "sha512"];

impl Filter {
    /// The filter of this name; the error is the end of a sentence.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "json" => Ok(Self::Json),
            "url" => Ok(Self::Url),
            "form" => Ok(Self::Form),
            "text" => Ok(Self::Text),
            "upper" => Ok(Self::Upper),
            "lower" => Ok(Self::Lower),
            "base64" => Ok(Self::Base64),
            "segments" => Ok(Self::Segments(false)),
            "segments /" => Ok(Self::Segments(true)),
            _ => match name.split_once(' ').map(|(word, rest)| (word, rest.trim())) {
                Some(("at", pointer)) if pointer.starts_with('/') => {
                    Ok(Self::At(pointer.to_owned()))
                }
                Some(("digits", number)) => match number.parse() {
                    Ok(digits @ 1..=MAX_DIGITS) => Ok(Self::Digits(digits)),
                    _ => Err(format!(
                        "asks for {number} digits, expected 1 to {MAX_DIGITS}"
                    )),
                },
                Some(("plus", number)) => number
                    .parse()
                    .map(Self::Plus)
                    .map_err(|_| format!("adds {number:?}, expected a whole number")),
                _ => match DIGESTS.iter().find(|known| **known == name) {
                    Some(digest) => Ok(Self::Digest(digest)),
                    None => Err(format!(
                        "has an unknown filter after |, expected json, url, form, text, upper, lower, base64, segments, digits N, plus N, {} or at /POINTER",
                        DIGESTS.join(", ")
                    )),
                },
            },
        }
    }

    fn rewrite(&self, out: &mut Vec<u8>, from: usize) {
        match self {
            Self::At(pointer) => {
                let whole: Option<Value> = serde_json::from_slice(&out[from..]).ok();
                let part = whole.as_ref().and_then(|whole| whole.pointer(pointer));
                let part = part.map_or_else(|| "null".to_owned(), Value::to_string);
                out.truncate(from);
                out.extend_from_slice(part.as_bytes());
            }
            Self::Text => {
                let text: Option<String> = match out.get(from) {
                    Some(b'"') => serde_json::from_slice(&out[from..]).ok(),
                    _ => None,
                };
                if let Some(text) = text {
                    out.truncate(from);
                    out.extend_from_slice(text.as_bytes());
                }
            }
            Self::Digits(digits) => {
                let signs = usize::from(out.get(from) == Some(&b'-'));
                let missing = (digits + signs).saturating_sub(out.len() - from);
                let first = from + signs;
                out.splice(first..first, std::iter::repeat_n(b'0', missing));
            }
            Self::Plus(more) => {
                let text = std::str::from_utf8(&out[from..]).ok();
                let number = text.and_then(|text| text.trim().parse::<i64>().ok());
                if let Some(number) = number {
                    out.truncate(from);
                    out.extend_from_slice(number.wrapping_add(*more).to_string().as_bytes());
                }
            }
            Self::Upper | Self::Lower | Self::Base64 | Self::Digest(_) => {
                let text = match self {
                    // Every name of `DIGESTS` is known there.
                    Self::Digest(name) => digests::of(name, None, &out[from..])
                        .unwrap_or_default()
                        .iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect(),
                    Self::Base64 => BASE64.encode(&out[from..]),
                    Self::Upper => String::from_utf8_lossy(&out[from..]).to_uppercase(),
                    _ => String::from_utf8_lossy(&out[from..]).to_lowercase(),
                };
                out.truncate(from);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Segments(closed) => {
                let value = out.split_off(from);
                let begins_query = value.iter().position(|byte| *byte == b'?');
                let (path, query) = value.split_at(begins_query.unwrap_or(value.len()));
                for byte in path {
                    let after_slash = out.len() == from || out.ends_with(b"/");
                    if *byte != b'/' || !after_slash {
                        out.push(*byte);
                    }
                }
                out.extend_from_slice(query);
                if *closed && out.len() > from && (!query.is_empty() || !out.ends_with(b"/")) {
                    out.push(b'/');
                }
            }
            Self::Url => percent_encode(out, from, |byte| {
                byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
            }),
            Self::Form => {
                percent_encode(out, from, |byte| {
                    byte.is_ascii_alphanumeric() || b"*-._ ".contains(&byte)
                });
                for byte in &mut out[from..] {
                    if *byte == b' ' {
                        *byte = b'+';
                    }
                }
            }
            Self::Json => {
                let text = Value::from(String::from_utf8_lossy(&out[from..])).to_string();
                out.truncate(from);
                out.extend_from_slice(&text.as_bytes()[1..text.len() - 1]);
            }
        }
    }
}

/// Rewrites what was rendered from `from` on where its filters, one after the other, or its place ask for it.
pub fn make_safe(out: &mut Vec<u8>, from: usize, place: RequestPart, filters: &[Filter]) {
    for filter in filters {
        filter.rewrite(out, from);
    }
    match place {
        RequestPart::Path => {
            percent_encode(out, from, |byte| byte.is_ascii_graphic() && byte != b'#')
        }
        RequestPart::Header => {
            for byte in &mut out[from..] {
                if *byte < b' ' && *byte != b'\t' || *byte == 0x7f {
                    *byte = b' ';
                }
            }
        }
        RequestPart::Body => {}
    }
}

pub fn percent_encode(out: &mut Vec<u8>, from: usize, stays: impl Fn(u8) -> bool) {
    if out[from..].iter().all(|byte| stays(*byte)) {
        return;
    }
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let plain = out.split_off(from);
    for byte in plain {
        if stays(byte) {
            out.push(byte);
        } else {
            let (high, low) = (byte >> 4, byte & 15);
            out.extend([b'%', DIGITS[usize::from(high)], DIGITS[usize::from(low)]]);
        }
    }
}
