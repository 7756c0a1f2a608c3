//! TLS of the server, by `rustls`: wire bytes in, plain bytes out, and back. It touches no socket.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use super::counters::Counters;

/// Loads certificate chain and key (PEM); the error is one sentence. `http2`: ALPN offers it, before
/// HTTP/1.1.
pub fn load(
    cert: &Path,
    key: &Path,
    resumption: bool,
    http2: bool,
) -> Result<Arc<ServerConfig>, String> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("--cert {}: cannot be read as PEM: {error}", cert.display()))?;
    if chain.is_empty() {
        return Err(format!(
            "--cert {}: no certificate is in it: give a PEM file",
            cert.display()
        ));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("--key {}: cannot be read as PEM: {error}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| format!("--cert and --key do not fit: {error}"))?;
    let offered: &[&[u8]] = match http2 {
        true => &[b"h2", b"http/1.1"],
        false => &[b"http/1.1"],
    };
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    if resumption {
        // Tickets that the client keeps: they cost the server no memory, however many clients there
        // are.
        config.ticketer = ring::Ticketer::new()
            .map_err(|error| format!("TLS tickets cannot be set up: {error}"))?;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}

/// What wire bytes contained.
#[derive(Debug, PartialEq, Eq)]
pub enum Unwrapped {
    /// The connection has no TLS.
    NoTls,
    /// There are bytes in `plain`.
    Plain,
    /// Only bytes of the TLS protocol itself.
    Handshake,
    /// The client does not speak TLS, or broke it: send the alert in `out` and close.
    Broken,
    /// The client has ended.
    Gone,
}

/// Takes bytes of the wire through a connection's TLS, if it has one, and counts.
pub fn unwrap(
    session: &mut Option<Box<Session>>,
    wire: &[u8],
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
    counters: &Counters,
) -> Unwrapped {
    let Some(open) = session.as_mut() else {
        return Unwrapped::NoTls;
    };
    plain.clear();
    let Ok(opened) = open.open(wire, plain) else {
        counters.tls_errors.add(1);
        // The alert goes out as it is; TLS ends here.
        let farewell = open.seal(&[], out);
        *session = None;
        return match farewell {
            Ok(()) => Unwrapped::Broken,
            Err(_) => Unwrapped::Gone,
        };
    };
    if let Some(resumed) = opened.handshake {
        counters.tls_handshakes.add(1);
        counters.tls_resumptions.add(u64::from(resumed));
    }
    match plain.is_empty() {
        false => Unwrapped::Plain,
        true if opened.ended => Unwrapped::Gone,
        true => Unwrapped::Handshake,
    }
}

/// What reading the bytes of the wire brought.
#[derive(Debug, Default)]
pub struct Opened {
    /// The handshake has ended with these bytes; true when it resumed an earlier session.
    pub handshake: Option<bool>,
    /// The client sent `close_notify`.
    pub ended: bool,
}

/// The TLS state of one connection.
#[derive(Debug)]
pub struct Session {
    connection: ServerConnection,
    established: bool,
    end_announced: bool,
}

impl Session {
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut connection = ServerConnection::new(config)?;
        // Output is sent right away and bounded by the machine.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            established: false,
            end_announced: false,
        })
    }

    /// Takes bytes of the wire and appends what is in them to `plain`.
    pub fn open(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<Opened, rustls::Error> {
        let mut opened = Opened::default();
        while !wire.is_empty() {
            match self.connection.read_tls(&mut wire) {
                // The client sent `close_notify`: nothing is read after it.
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(rustls::Error::General(error.to_string())),
            }
            let state = self.connection.process_new_packets()?;
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            // All of these bytes are there already, so that reading cannot fail or stop short.
            self.connection
                .reader()
                .read_exact(&mut plain[from..])
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            opened.ended |= state.peer_has_closed();
        }
        if !self.established && !self.connection.is_handshaking() {
            self.established = true;
            let kind = self.connection.handshake_kind();
            opened.handshake = Some(kind == Some(HandshakeKind::Resumed));
        }
        Ok(opened)
    }

    /// Whether TLS itself has something to send: handshake or alert.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Appends `plain`, and whatever TLS has to say itself, to `wire`.
    pub fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> std::io::Result<()> {
        self.connection.writer().write_all(plain)?;
        while self.connection.wants_write() {
            self.connection.write_tls(wire)?;
        }
        Ok(())
    }

    /// Puts `close_notify` into the output; false when that was done before.
    pub fn announce_end(&mut self) -> bool {
        if self.end_announced {
            return false;
        }
        self.end_announced = true;
        self.connection.send_close_notify();
        true
    }
}
