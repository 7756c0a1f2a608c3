//! A step of the plan as the bytes of a request, written once before the load starts.

use crate::plan::Step;

/// The bytes of a step, as sent on a connection that stays and as the last request of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBytes {
    pub staying: Vec<u8>,
    pub closing: Vec<u8>,
}

/// Writes the request of a checked step. `authority` is the target's host and port as written in its URL.
pub fn write_request(step: &Step, authority: &str) -> RequestBytes {
    let listed = |name: &str| {
        step.headers
            .iter()
            .any(|(listed, _)| listed.eq_ignore_ascii_case(name))
    };
    let mut head = format!("{} {} HTTP/1.1\r\n", step.method, step.path);
    if !listed("host") {
        head.push_str(&format!("Host: {authority}\r\n"));
    }
    for (name, value) in &step.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = &step.body
        && !listed("content-length")
        && !listed("transfer-encoding")
    {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    let body = step.body.as_deref().unwrap_or_default();
    let staying = format!("{head}\r\n{body}").into_bytes();
    let closing = if listed("connection") {
        staying.clone()
    } else {
        format!("{head}Connection: close\r\n\r\n{body}").into_bytes()
    };
    RequestBytes { staying, closing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &str) -> Step {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn host_and_length_are_added_only_where_missing() {
        let bare = write_request(&step(r#"{"path":"/a"}"#), "h:1");
        assert_eq!(bare.staying, b"GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n");
        assert_eq!(
            bare.closing,
            b"GET /a HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n"
        );
        let full = step(
            r#"{"method":"PUT","path":"/","headers":[["host","x"],["connection","close"]],"body":"12"}"#,
        );
        let full = write_request(&full, "h:1");
        assert_eq!(
            full.staying,
            b"PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nContent-Length: 2\r\n\r\n12"
        );
        assert_eq!(full.closing, full.staying);
    }
}
