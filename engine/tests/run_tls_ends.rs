//! How TLS connections begin and end, against servers of `rustls` that look at it: handshakes that no
//! request follows, bodies that are cut short, farewells, and certificates that are trusted themselves.

mod run_support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use run_support::{assert_counts, drivers, plan, run};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// A certificate for 127.0.0.1, signed by itself; `edit` changes it.
fn identity(
    protocols: &[&str],
    edit: impl FnOnce(&mut CertificateParams),
) -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    edit(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    (Arc::new(config), certificate.pem())
}

/// A thread per connection, whose handshake has ended; what it returns is sent.
fn serve<T: Send + 'static>(
    config: Arc<ServerConfig>,
    with: impl Fn(Stream) -> T + Send + Sync + 'static,
) -> (SocketAddr, Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver): (Sender<T>, _) = channel();
    let with = Arc::new(with);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let (with, sender) = (Arc::clone(&with), sender.clone());
            std::thread::spawn(move || {
                while session.is_handshaking() {
                    if session.complete_io(&mut socket).is_err() {
                        return;
                    }
                }
                let _ = sender.send(with(StreamOwned::new(session, socket)));
            });
        }
    });
    (address, receiver)
}

fn request(stream: &mut Stream) -> bool {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => all.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn secure(address: SocketAddr, driver: &str, edit: impl FnOnce(&mut Value)) -> Value {
    plan(address, driver, |plan| {
        plan["target"] = json!({"url": format!("https://{address}"), "tls": {"insecure": true}});
        edit(plan);
    })
}

const ONE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn connections_that_no_request_follows_are_whole() {
    for driver in drivers() {
        let (config, _) = identity(&["http/1.1"], |_| {});
        // Nobody is answered before all four have shaken hands.
        let all = Arc::new(Barrier::new(4));
        let (address, _ended) = serve(config, move |mut stream| {
            all.wait();
            while request(&mut stream) {
                stream.write_all(ONE).unwrap();
            }
        });
        let ended = run(&secure(address, driver, |plan| {
            plan["load"] = json!({"model": "open", "arrivals": "constant", "max_users": 4, "connections": 4,
                "phases": [{"duration_ms": 2000, "from_per_s": 1.0, "to_per_s": 1.0}]});
            plan["stop"] = json!({"total_requests": 1, "after_ms": 30_000});
        }));
        let totals = &ended.finished()["totals"];
        assert_counts(totals, &json!({"completed": 1, "failed": 0, "errors": {}}));
    }
}

#[test]
fn a_body_that_ends_with_its_connection_needs_the_farewell_of_tls() {
    for driver in drivers() {
        for (says, head, completed, errors) in [
            (true, "", 3, json!({})),
            (false, "", 0, json!({"tls_truncated": 3})),
            // Whole by its length, whatever ends the connection.
            (false, "Content-Length: 4\r\n", 3, json!({})),
            (
                false,
                "Content-Length: 9\r\n",
                0,
                json!({"premature_close": 3}),
            ),
        ] {
            let (config, _) = identity(&["http/1.1"], |_| {});
            let (address, _ended) = serve(config, move |mut stream| {
                request(&mut stream);
                let text = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\nbody");
                stream.write_all(text.as_bytes()).unwrap();
                if says {
                    stream.conn.send_close_notify();
                    stream.flush().unwrap();
                }
            });
            let ended = run(&secure(address, driver, |plan| {
                plan["stop"] = json!({"total_requests": 3, "after_ms": 30_000});
            }));
            let totals = &ended.finished()["totals"];
            assert_counts(totals, &json!({"completed": completed, "errors": errors}));
        }
    }
}

#[test]
fn http2_says_farewell_to_the_server_and_to_tls() {
    for driver in drivers() {
        let (config, _) = identity(&["h2"], |_| {});
        let (address, ended) = serve(config, |mut stream| {
            // Empty SETTINGS; then status 200 without a body for the first request.
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
            stream.read_exact(&mut [0; 24]).unwrap();
            let mut kinds = Vec::new();
            let how = loop {
                let mut head = [0; 9];
                match stream.read_exact(&mut head) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        break error.to_string();
                    }
                    Err(error) => panic!("{error}"),
                }
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                stream.read_exact(&mut vec![0; length as usize]).unwrap();
                kinds.push(head[3]);
                if head[3] == 1 {
                    stream
                        .write_all(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88])
                        .unwrap();
                }
            };
            // What ends without the farewell of TLS is an error of its own.
            (kinds.last() == Some(&7), how.contains("close_notify"))
        });
        run(&secure(address, driver, |plan| {
            plan["http_version"] = "2".into();
            plan["stop"] = json!({"total_requests": 1, "after_ms": 30_000});
        }));
        let (goaway, cut_short) = ended.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(goaway && !cut_short, "{driver}: {goaway} {cut_short}");
    }
}

#[test]
fn a_certificate_of_the_file_is_trusted_itself_for_its_name_and_time() {
    type Edit = fn(&mut CertificateParams);
    let signs: Edit = |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let plain: Edit = |_| {};
    let expired: Edit = |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(2021, 1, 1);
    };
    let folder = tempfile::tempdir().unwrap();
    for (place, (edit, name, other, word)) in [
        (signs, "127.0.0.1", false, ""),
        (plain, "127.0.0.1", false, ""),
        (signs, "localhost", false, "not valid for name"),
        (expired, "127.0.0.1", false, "expired"),
        (signs, "127.0.0.1", true, "invalid peer certificate"),
    ]
    .into_iter()
    .enumerate()
    {
        let (config, mut pem) = identity(&["http/1.1"], edit);
        if other {
            pem = identity(&[], edit).1;
        }
        let ca = folder.path().join(format!("{place}.pem"));
        fs::write(&ca, pem).unwrap();
        let (address, _ended) = serve(config, |mut stream| {
            while request(&mut stream) {
                stream.write_all(ONE).unwrap();
            }
        });
        let ended = run(&secure(address, "epoll", |plan| {
            plan["target"]["tls"] = json!({"ca": ca, "sni": name});
            plan["stop"] = json!({"total_requests": 2, "after_ms": 30_000});
        }));
        let totals = &ended.finished()["totals"];
        if word.is_empty() {
            assert_counts(totals, &json!({"completed": 2, "errors": {}}));
        } else {
            let reason = totals["error_reasons"]["tls"].as_str().unwrap();
            assert!(reason.contains(word), "{reason}");
        }
    }
}
