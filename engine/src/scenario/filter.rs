//! How a rendered value is written so that it cannot break what stands around it. Bytes in, bytes out.

use super::template::Place;

/// What a placeholder asks for beside its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    None,
    /// Escaped as the inside of a JSON string.
    Json,
    /// Everything but unreserved characters as `%xx` (RFC 3986, section 2.3).
    Url,
    /// As a browser writes a field of a form: a blank as `+`, everything but letters, digits and `*-._` as `%xx` (WHATWG URL,
    /// application/x-www-form-urlencoded).
    Form,
}

impl Filter {
    /// The filter of this name; the error is the end of a sentence.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "json" => Ok(Self::Json),
            "url" => Ok(Self::Url),
            "form" => Ok(Self::Form),
            _ => Err("has an unknown filter after |, expected json, url or form".to_owned()),
        }
    }
}

/// Rewrites what was rendered from `from` on where its place or its filter asks for it.
pub fn make_safe(out: &mut Vec<u8>, from: usize, place: Place, filter: Filter) {
    match filter {
        Filter::None => {}
        Filter::Url => percent_encode(out, from, |byte| {
            byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
        }),
        Filter::Form => {
            percent_encode(out, from, |byte| {
                byte.is_ascii_alphanumeric() || b"*-._ ".contains(&byte)
            });
            for byte in &mut out[from..] {
                if *byte == b' ' {
                    *byte = b'+';
                }
            }
        }
        Filter::Json => {
            let text = serde_json::Value::from(String::from_utf8_lossy(&out[from..])).to_string();
            out.truncate(from);
            out.extend_from_slice(&text.as_bytes()[1..text.len() - 1]);
        }
    }
    match place {
        Place::Path => percent_encode(out, from, |byte| byte.is_ascii_graphic() && byte != b'#'),
        Place::Header => {
            for byte in &mut out[from..] {
                if *byte < b' ' && *byte != b'\t' || *byte == 0x7f {
                    *byte = b' ';
                }
            }
        }
        Place::Body => {}
    }
}

fn percent_encode(out: &mut Vec<u8>, from: usize, stays: impl Fn(u8) -> bool) {
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
