//! What lies between the socket and HTTP: TLS, Unix sockets, the record of what was received.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::serve_support::{Client, End, Server, refused};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// A certificate for 127.0.0.1 in a folder of its own, and the server's options to use it.
struct Identity {
    folder: tempfile::TempDir,
}

impl Identity {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(
            folder.path().join("key.pem"),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
        Self { folder }
    }

    fn options(&self) -> String {
        let folder = self.folder.path().display();
        format!("--tls --cert {folder}/cert.pem --key {folder}/key.pem")
    }

    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.folder.path().join("cert.pem")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}

fn connect(server: &Server, config: &Arc<ClientConfig>) -> TlsClient {
    let socket = TcpStream::connect(server.address()).unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    Client::new(StreamOwned::new(
        ClientConnection::new(Arc::clone(config), name).unwrap(),
        socket,
    ))
}

#[test]
fn tls_of_both_versions_carries_long_responses_and_delays() {
    let identity = Identity::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = Server::start(&identity.options());
        assert_eq!(server.listening["tls"], true);
        let mut client = connect(&server, &Arc::new(identity.client(&[version])));
        assert_eq!(client.get("/").body.len(), 64);
        assert_eq!(client.stream().conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(
            client.stream().conn.protocol_version(),
            Some(version.version)
        );
        assert_eq!(client.get("/?bytes=5000000").body.len(), 5_000_000);
        assert_eq!(client.get("/?delay=20ms&status=404").status, 404);
        client.send("POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
        client.send(vec![b'x'; 100_000]);
        assert_eq!(client.response().body.len(), 100_000);
        client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
        client.response();
        // With TLS's own farewell: without it the end would be an error.
        assert_eq!(client.next(), End::Closed);
        let finished = server.stop();
        assert_eq!(
            (
                finished["requests"].as_u64(),
                finished["tls_handshakes"].as_u64()
            ),
            (Some(5), Some(1))
        );
        assert_eq!(finished["tls_resumptions"], 0);
    }
}

fn handshakes(options: &str) -> (u64, u64) {
    let identity = Identity::new();
    let mut counted = (0, 0);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = Server::start(&format!("{} {options}", identity.options()));
        let mut config = identity.client(&[version]);
        config.resumption = Resumption::in_memory_sessions(16);
        let config = Arc::new(config);
        for _ in 0..4 {
            assert_eq!(connect(&server, &config).get("/").status, 200);
        }
        let finished = server.stop();
        counted.0 += finished["tls_handshakes"].as_u64().unwrap();
        counted.1 += finished["tls_resumptions"].as_u64().unwrap();
    }
    counted
}

#[test]
fn sessions_are_resumed_and_counted() {
    assert_eq!(handshakes(""), (8, 6));
}

#[test]
fn resumption_can_be_refused() {
    assert_eq!(handshakes("--no-resumption"), (8, 0));
}

#[test]
fn a_client_that_speaks_no_tls_is_told_and_counted() {
    let identity = Identity::new();
    let server = Server::start(&identity.options());
    let mut plain = server.connect();
    plain.ask("/");
    // An alert record: type 21.
    assert_eq!(plain.rest()[0], 21);
    assert_eq!(server.stop()["tls_errors"], 1);
}

#[test]
fn trouble_goes_over_tls_too() {
    let identity = Identity::new();
    let server = Server::start(&format!(
        "{} --truncate share=1 --body-bytes 100",
        identity.options()
    ));
    let mut client = connect(
        &server,
        &Arc::new(identity.client(&[&rustls::version::TLS13])),
    );
    client.ask("/");
    client.head();
    assert_eq!(client.rest().len(), 50);
    let mut client = connect(
        &server,
        &Arc::new(identity.client(&[&rustls::version::TLS13])),
    );
    client.ask("/?truncate=0&reset=1");
    assert_eq!(client.next(), End::Reset);
}

#[test]
fn files_that_are_no_certificate_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no.pem");
    std::fs::write(&file, "nothing of use").unwrap();
    for (cert, key) in [(file.to_str().unwrap(), "/no/key"), ("/no/cert", "/no/key")] {
        let output = refused(&format!("--tls --cert {cert} --key {key}"));
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), sentence.lines().count()),
            (Some(2), 1),
            "{sentence}"
        );
        assert!(sentence.contains(cert), "{sentence}");
    }
    // A key that belongs to another certificate.
    let (one, two) = (Identity::new(), Identity::new());
    let cert = one.folder.path().join("cert.pem");
    let key = two.folder.path().join("key.pem");
    let output = refused(&format!(
        "--tls --cert {} --key {}",
        cert.display(),
        key.display()
    ));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("do not fit")
    );
}

#[test]
fn listens_on_a_unix_socket_and_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = Server::start_words(&["--unix", path.to_str().unwrap(), "--delay", "1ms"]);
    assert_eq!(server.address(), format!("unix:{}", path.display()));
    let mut client = Client::new(UnixStream::connect(&path).unwrap());
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/?bytes=3000000").body.len(), 3_000_000);
    assert_eq!(server.stop()["requests"], 2);
    assert!(!path.exists());
}

#[test]
fn records_the_requests_as_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let server = Server::start_words(&["--record", path.to_str().unwrap(), "--record-bytes", "60"]);
    let mut client = server.connect();
    let first = "POST / HTTP/1.1\r\nhOST: x\r\nContent-Length: 2\r\n\r\nhi";
    client.send(first);
    client.response();
    client.get("/second");
    server.stop();
    let record = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        record,
        format!("{first}GET /second HTTP/1.1\r\nHost: x\r\n\r\n")[..60]
    );
    let output = refused("--record /no/such/folder/file");
    assert_eq!(output.status.code(), Some(2));
}
