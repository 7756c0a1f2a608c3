//! Responses in one piece, in any pieces, broken and endless.

use super::*;
use crate::plan::Expect;
use proptest::prelude::*;

struct Client {
    reader: ResponseReader,
    expectation: Expectation,
    recent: HeadCache,
    head_request: bool,
    budget: Budget,
    digests: bool,
    digest: Option<u64>,
}

impl Client {
    fn new(head_request: bool) -> Self {
        Self {
            reader: ResponseReader::default(),
            expectation: Expectation::new(&Expect {
                body_contains: vec!["hello".into()],
                ..Expect::default()
            }),
            recent: HeadCache::default(),
            head_request,
            budget: Budget::new(u64::MAX),
            digests: false,
            digest: None,
        }
    }

    fn of(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            ..Self::new(false)
        }
    }

    fn with<T>(
        &mut self,
        captured: Option<&mut CapturedResponse>,
        act: impl FnOnce(&mut ResponseReader, &mut Exchange<'_>) -> T,
    ) -> T {
        let mut exchange = Exchange {
            head_request: self.head_request,
            max_head_bytes: 65_536,
            expectation: &self.expectation,
            recent: &mut self.recent,
            budget: &self.budget,
            captured,
            digest: self.digests.then_some(&mut self.digest),
            continues: false,
            more: false,
            behind: 0,
        };
        act(&mut self.reader, &mut exchange)
    }

    fn feed(&mut self, input: &[u8]) -> Result<Option<Response>, BadResponse> {
        self.with(None, |reader, exchange| reader.feed(input, exchange))
    }

    fn close(&mut self) -> Option<Response> {
        self.with(None, ResponseReader::close)
    }
}

const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nServer: x\r\n\r\nhello world",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n8;x=y\r\nlo world\r\n0\r\nT: 1\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 201 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
];

#[test]
fn a_sampled_body_has_the_same_digest_in_one_piece_in_many_and_chunked() {
    let digest_of = |text: &str, size: usize, digests| {
        let mut client = Client::new(false);
        client.digests = digests;
        for piece in text.as_bytes().chunks(size) {
            let _ = client.feed(piece).unwrap();
        }
        client.digest
    };
    let whole = digest_of(RESPONSES[0], 1000, true);
    assert_eq!(whole, Some(0xb94d_27b9_934d_3e08), "SHA-256 of hello world");
    for text in &RESPONSES[..2] {
        for size in [1, 7, 1000] {
            assert_eq!(digest_of(text, size, true), whole);
            assert_eq!(digest_of(text, size, false), None);
        }
    }
}

#[test]
fn a_body_longer_than_64_kib_gets_no_digest() {
    for (bytes, sampled) in [(65_536, true), (65_537, false)] {
        let body = "x".repeat(bytes);
        let (first, rest) = body.split_at(1000);
        let rest_bytes = rest.len();
        let texts = [
            format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}"),
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{first}\r\n{rest_bytes:x}\r\n{rest}\r\n0\r\n\r\n"
            ),
        ];
        for text in &texts {
            for size in [1000, text.len()] {
                let mut client = Client::new(false);
                client.digests = true;
                let mut pieces = text.as_bytes().chunks(size);
                let response = pieces
                    .find_map(|piece| client.feed(piece).unwrap())
                    .unwrap();
                assert_eq!(response.body_bytes, bytes as u64);
                assert_eq!(
                    client.digest.is_some(),
                    sampled,
                    "{bytes} in pieces of {size}"
                );
            }
        }
    }
}

#[test]
fn whole_responses_are_read_in_one_piece_and_again_from_the_recent_head() {
    for text in RESPONSES {
        let mut client = Client::new(false);
        let first = client.feed(text.as_bytes()).unwrap().unwrap();
        let second = client.feed(text.as_bytes()).unwrap().unwrap();
        assert_eq!(first, second);
        assert!(client.reader.partial.is_none());
    }
}

#[test]
fn an_interim_response_in_a_piece_of_its_own_is_never_a_whole_one() {
    let mut client = Client::new(false);
    for _ in 0..3 {
        assert_eq!(client.feed(b"HTTP/1.1 100 Continue\r\n\r\n"), Ok(None));
        let response = client
            .feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            .unwrap()
            .unwrap();
        assert_eq!((response.status, response.surplus), (200, false));
    }
}

#[test]
fn a_body_until_the_close_ends_with_it() {
    let mut client = Client::new(false);
    assert_eq!(client.feed(b"HTTP/1.1 200 OK\r\n\r\nhel"), Ok(None));
    assert_eq!(client.feed(b"lo"), Ok(None));
    let response = client.close().unwrap();
    assert_eq!(
        (response.body_bytes, response.unmet, response.keep_alive),
        (5, None, false)
    );
    assert_eq!(
        client.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel"),
        Ok(None)
    );
    assert_eq!(
        client.close(),
        None,
        "a declared length that was not reached is no response"
    );
}

#[test]
fn the_response_to_head_has_no_body() {
    let mut client = Client::new(true);
    let response = client
        .feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        .unwrap()
        .unwrap();
    assert_eq!((response.body_bytes, response.surplus), (0, false));
}

#[test]
fn surplus_bytes_are_seen() {
    let mut client = Client::new(false);
    let response = client
        .feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!!")
        .unwrap()
        .unwrap();
    assert!(response.surplus && !response.keep_alive);
}

#[test]
fn an_endless_head_is_refused_in_bounded_memory() {
    let mut client = Client::new(false);
    assert_eq!(client.feed(b"HTTP/1.1 200 OK\r\n"), Ok(None));
    let mut refused = None;
    for _ in 0..200 {
        if let Err(error) = client.feed(format!("X: {}\r\n", "a".repeat(1000)).as_bytes()) {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused, Some(BadResponse::HeadTooLong));
}

#[test]
fn responses_that_never_end_share_the_memory_of_their_thread() {
    let budget = Budget::new(10_000);
    let mut begun: Vec<Client> = (0..10).map(|_| Client::of(&budget)).collect();
    let mut results = Vec::new();
    for client in &mut begun {
        let head = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(1_500));
        results.push(client.feed(head.as_bytes()).map(|_| ()));
    }
    assert_eq!(results[..6], [Ok(()); 6]);
    assert_eq!(results[6..], [Err(BadResponse::NoMemory); 4]);
    // What is given up, or comes to its end, makes room for others.
    begun[0].reader.reset();
    assert!(
        begun[1]
            .feed(b"\r\nContent-Length: 5\r\n\r\nhello")
            .unwrap()
            .is_some()
    );
    assert_eq!(
        begun[9].feed(&[b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'a'; 3_000]].concat()),
        Ok(None)
    );
}

#[test]
fn copies_of_bodies_share_it_too_and_bodies_that_are_not_copied_need_none() {
    let budget = Budget::new(100_000);
    let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let feed = |wanted: Option<&mut CapturedResponse>| {
        Client::of(&budget).with(wanted, |reader, exchange| {
            let mut result = reader.feed(begin, exchange);
            for _ in 0..15 {
                result = result.and_then(|_| reader.feed(&[b'x'; 10_000], exchange));
            }
            result
        })
    };
    assert_eq!(feed(None), Ok(None));
    assert_eq!(
        feed(Some(&mut CapturedResponse::new(true))),
        Err(BadResponse::NoMemory)
    );
    assert_eq!(feed(Some(&mut CapturedResponse::new(false))), Ok(None));
}

#[test]
fn garbage_is_refused_at_once() {
    assert_eq!(
        Client::new(false).feed(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        Err(BadResponse::Malformed)
    );
}

proptest! {
    /// Any split of the bytes gives the same responses.
    #[test]
    fn splits_do_not_matter(which in 0..RESPONSES.len(), cuts in proptest::collection::vec(0usize..200, 0..12)) {
        let text = RESPONSES[which].as_bytes();
        let expected = Client::new(false).feed(text).unwrap().unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut client = Client::new(false);
        let mut responses = Vec::new();
        for pair in cuts.windows(2) {
            if pair[0] < pair[1] {
                responses.extend(client.feed(&text[pair[0]..pair[1]]).unwrap());
            }
        }
        prop_assert_eq!(responses, vec![expected]);
    }

    /// Garbage never panics, whatever its pieces.
    #[test]
    fn garbage_never_panics(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8)) {
        let mut client = Client::new(false);
        for piece in &pieces {
            if client.feed(piece).is_err() {
                break;
            }
        }
        client.close();
    }

    /// Nor do responses with single bytes changed.
    #[test]
    fn damaged_responses_never_panic(which in 0..RESPONSES.len(), at in 0usize..200, byte: u8, cut in 0usize..200) {
        let mut text = RESPONSES[which].as_bytes().to_vec();
        let length = text.len();
        text[at % length] = byte;
        let mut client = Client::new(false);
        let (left, right) = text.split_at(cut % length);
        if client.feed(left).is_ok() {
            let _ = client.feed(right);
        }
        client.close();
    }
}
