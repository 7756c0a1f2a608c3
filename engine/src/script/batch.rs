//! The requests in the bytes that a script returned: where each ends, and which are HEAD, whose
//! responses have no body. It knows nothing of Lua.

/// More in one batch than these are a mistake in the script.
pub const MAX_REQUESTS: usize = 10_000;
const MAX_HEADERS: usize = 128;

/// One request of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedRequest {
    /// Where it ends in the batch.
    pub end: usize,
    /// Its method is HEAD.
    pub head: bool,
}

/// Reads the requests, at least one; a sentence on what is wrong with them otherwise.
pub fn read_requests(bytes: &[u8]) -> Result<Vec<BatchedRequest>, String> {
    let mut requests = Vec::new();
    read_into(&mut requests, bytes)?;
    Ok(requests)
}

/// The requests as far as they can be read; what is left counts as one more.
pub fn read_whatever(bytes: &[u8]) -> Vec<BatchedRequest> {
    let mut requests = Vec::new();
    if read_into(&mut requests, bytes).is_err() {
        let from = requests.last().map_or(0, |request| request.end);
        if from < bytes.len() {
            requests.push(BatchedRequest {
                end: bytes.len(),
                head: bytes[from..].starts_with(b"HEAD "),
            });
        }
    }
    requests
}

fn read_into(requests: &mut Vec<BatchedRequest>, bytes: &[u8]) -> Result<(), String> {
    let mut from = 0;
    while from < bytes.len() {
        let rest = &bytes[from..];
        if let Some(last) = requests.last_mut()
            && rest.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
        {
            // Empty lines behind a body, which servers pass over.
            last.end = bytes.len();
            break;
        }
        let number = requests.len() + 1;
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let head_bytes = match request.parse(rest) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => refuse! { "request {number} in it has no end" },
            Err(error) => return Err(format!("request {number} in it is not HTTP: {error}")),
        };
        let head = request.method == Some("HEAD");
        let end = body_bytes(request.headers, &rest[head_bytes..])
            .map(|body_bytes| from + head_bytes + body_bytes)
            .filter(|end| *end <= bytes.len())
            .ok_or_else(|| format!("the body of request {number} in it has no end"))?;
        requests.push(BatchedRequest { end, head });
        from = end;
        refuse_if! {
            requests.len() > MAX_REQUESTS => "it holds more than {MAX_REQUESTS} requests";
        }
    }
    refuse_if! { requests.is_empty() => "it is empty"; }
    Ok(())
}

/// The length of the body on the wire; `None` when it has no end.
fn body_bytes(headers: &[httparse::Header<'_>], rest: &[u8]) -> Option<usize> {
    let value = |name: &str| {
        headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| String::from_utf8_lossy(header.value).trim().to_lowercase())
    };
    if value("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked")) {
        let mut chunks = prony_common::chunked::Chunked::lenient();
        let used = chunks.read(rest, |_| {}).ok()?;
        return chunks.is_done().then_some(used);
    }
    value("content-length").map_or(Some(0), |length| length.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_whatever_their_framing() {
        let get = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let head = b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let post = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_vec();
        let chunked =
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec();
        let all = [get.clone(), head, post, chunked].concat();
        let found = read_requests(&all).unwrap();
        let heads: Vec<bool> = found.iter().map(|request| request.head).collect();
        assert_eq!(heads, [false, true, false, false]);
        assert_eq!((found[0].end, found[3].end), (get.len(), all.len()));
        assert_eq!(read_requests(&get).unwrap().len(), 1);
        let padded = [&get[..], b"\r\n\r\n"].concat();
        assert_eq!(read_requests(&padded).unwrap()[0].end, padded.len());
    }

    #[test]
    fn what_cannot_be_read_is_one_request() {
        let get = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let broken = b"HEAD /a b HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let all = [get.clone(), broken].concat();
        let found = read_whatever(&all);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].end, found[1].end), (get.len(), all.len()));
        assert!(found[1].head);
        assert!(read_whatever(b"").is_empty());
    }

    #[test]
    fn what_is_no_request_is_named() {
        for (bytes, part) in [
            (&b""[..], "empty"),
            (b"GET / HTTP/1.1\r\nHost: h\r\n", "no end"),
            (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", "no end"),
            (
                b"POST / HTTP/1.1\r\nHost: h\r\n\r\n{\"a\":1}",
                "request 2 in it",
            ),
        ] {
            let refusal = read_requests(bytes).unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }
}
