//! The TLS state of one connection, on the unbuffered API of `rustls`. No I/O.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, Error, HandshakeKind};

use super::{PROTOCOLS, Secured};

/// What a record adds to its plain bytes at most (RFC 8446, 5.2; RFC 5246, 6.2), and holds.
const RECORD_OVERHEAD_BYTES: usize = 64;
const RECORD_BYTES: usize = 16 * 1024;

/// What reading the bytes of the wire brought besides plain bytes.
#[derive(Debug, Default)]
pub struct Opened {
    /// The handshake has ended with these bytes.
    pub secured: bool,
    /// The server has said that nothing more will come.
    pub ended: bool,
    /// What is to be sent cannot wait: the server needs it to go on with the handshake.
    pub urgent: bool,
}

/// The TLS state of one connection.
pub struct TlsSession {
    connection: UnbufferedClientConnection,
    /// The beginning of a record whose rest has not come.
    partial: Vec<u8>,
    established: bool,
}

/// Where the state machine stopped.
enum Reached {
    /// More bytes of the handshake are needed.
    Blocked,
    /// Plain bytes may be sent.
    Open,
    Closed,
}

impl TlsSession {
    /// Begins a handshake; its first bytes go to `out`.
    pub fn begin(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let mut session = Self {
            connection: UnbufferedClientConnection::new(config, name)?,
            partial: Vec::new(),
            established: false,
        };
        drive(&mut session.connection, &mut [], &mut Vec::new(), out)?;
        Ok(session)
    }

    /// Whether the handshake has ended.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Takes bytes of the wire, which it changes; appends what is in them to `plain` and what TLS
    /// itself has to send to `out`. After an error `out` may hold the alert for the server.
    pub fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        let result = if self.partial.is_empty() {
            drive(&mut self.connection, wire, plain, out).inspect(|driven| {
                self.partial.extend_from_slice(&wire[driven.used..]);
            })
        } else {
            self.partial.extend_from_slice(wire);
            drive(&mut self.connection, &mut self.partial, plain, out).inspect(|driven| {
                self.partial.drain(..driven.used);
            })
        };
        let driven = result?;
        if self.partial.is_empty() {
            // Idle connections keep no memory for what comes rarely.
            self.partial = Vec::new();
        }
        let mut opened = Opened {
            secured: false,
            ended: driven.ended,
            urgent: matches!(driven.reached, Reached::Blocked),
        };
        if !self.established && matches!(driven.reached, Reached::Open) {
            self.established = true;
            opened.secured = true;
        }
        Ok(opened)
    }

    /// What the handshake ended with.
    pub fn secured(&self) -> Secured {
        let connection = &self.connection;
        let chosen = connection.alpn_protocol();
        Secured {
            version: connection.protocol_version().map_or(0, u16::from),
            cipher_suite: connection
                .negotiated_cipher_suite()
                .map_or(0, |suite| u16::from(suite.suite())),
            alpn: PROTOCOLS
                .iter()
                .position(|name| Some(name.as_bytes()) == chosen)
                .map_or(0, |place| place as u8 + 1),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Appends plain bytes as records to `out`.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let needed = plain.len() + (plain.len() / RECORD_BYTES + 1) * RECORD_OVERHEAD_BYTES;
        self.write(out, needed, |traffic, room| traffic.encrypt(plain, room))
    }

    /// Appends close_notify to `out`.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(out, RECORD_OVERHEAD_BYTES, |traffic, room| {
            traffic.queue_close_notify(room)
        })
    }

    fn write(
        &mut self,
        out: &mut Vec<u8>,
        needed: usize,
        mut put: impl FnMut(
            &mut WriteTraffic<'_, rustls::client::ClientConnectionData>,
            &mut [u8],
        ) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(&mut self.partial);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return append(out, needed, |room| match put(&mut traffic, room) {
                        Err(EncryptError::InsufficientSize(size)) => Err(Ok(size.required_size)),
                        other => other.map_err(|error| Err(error.to_string())),
                    });
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, out)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                _ => return Err(Error::HandshakeNotComplete),
            }
            self.partial.drain(..discard);
        }
    }
}

struct Driven {
    used: usize,
    ended: bool,
    reached: Reached,
}

fn drive(
    connection: &mut UnbufferedClientConnection,
    wire: &mut [u8],
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Driven, Error> {
    let mut driven = Driven {
        used: 0,
        ended: false,
        reached: Reached::Blocked,
    };
    loop {
        let UnbufferedStatus {
            mut discard, state, ..
        } = connection.process_tls_records(&mut wire[driven.used..]);
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                put_alert(connection, &mut wire[driven.used + discard..], out);
                return Err(error);
            }
        };
        let reached = match state {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    plain.extend_from_slice(record.payload);
                }
                None
            }
            ConnectionState::EncodeTlsData(mut data) => {
                encode(&mut data, out)?;
                None
            }
            ConnectionState::TransmitTlsData(data) => {
                data.done();
                None
            }
            ConnectionState::PeerClosed => {
                driven.ended = true;
                None
            }
            ConnectionState::WriteTraffic(_) => Some(Reached::Open),
            ConnectionState::BlockedHandshake => Some(Reached::Blocked),
            _ => Some(Reached::Closed),
        };
        driven.used += discard;
        if let Some(reached) = reached {
            driven.reached = reached;
            return Ok(driven);
        }
    }
}

/// After an error: what can still be said is why. `wire` is what the failed call left of its bytes.
fn put_alert(connection: &mut UnbufferedClientConnection, wire: &mut [u8], out: &mut Vec<u8>) {
    let status = connection.process_tls_records(wire);
    if let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state {
        // That the alert cannot be said makes the error no better.
        let _ = encode(&mut data, out);
    }
}

fn encode(
    data: &mut rustls::unbuffered::EncodeTlsData<'_, rustls::client::ClientConnectionData>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    append(out, 1024, |room| match data.encode(room) {
        Err(EncodeError::InsufficientSize(size)) => Err(Ok(size.required_size)),
        other => other.map_err(|error| Err(error.to_string())),
    })
}

/// Appends what is put into so much room. The error of `put`: how much it needs, or what is wrong.
fn append(
    out: &mut Vec<u8>,
    mut room: usize,
    mut put: impl FnMut(&mut [u8]) -> Result<usize, Result<usize, String>>,
) -> Result<(), Error> {
    let from = out.len();
    loop {
        out.resize(from + room, 0);
        match put(&mut out[from..]) {
            Ok(written) => {
                out.truncate(from + written);
                return Ok(());
            }
            Err(Ok(needed)) if needed > room => room = needed,
            Err(Ok(needed)) => {
                return Err(Error::General(format!("{needed} bytes do not suffice")));
            }
            Err(Err(reason)) => return Err(Error::General(reason)),
        }
    }
}
