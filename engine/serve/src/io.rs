//! The bytes of a connection: counted on the wire, through TLS if there is any, recorded, and sent
//! a byte at a time where that is an option. It knows nothing of requests.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{Shutdown, shutdown};
use rustls::HandshakeKind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::counters::Counters;
use super::frames::{PREFACE, RefusedStreams};
use super::ready::clear_ready;
use super::timers::Until;

/// The socket, with its bytes counted.
struct Wire {
    socket: Rc<TcpStream>,
    counters: Arc<Counters>,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(context))?;
            match self.socket.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(length) => {
                    if length > 0 && length < buffer.remaining() {
                        clear_ready(&self.socket);
                    }
                    buffer.advance(length);
                    self.counters.bytes_received.add(length as u64);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_write_ready(context))?;
            match self.socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(length) => {
                    self.counters.bytes_sent.add(length as u64);
                    return Poll::Ready(Ok(length));
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(shutdown(&*self.socket, Shutdown::Write)?))
    }
}

trait Transport: AsyncRead + AsyncWrite {}

impl<T: AsyncRead + AsyncWrite> Transport for T {}

pub struct Io {
    connection: Rc<Connection>,
    /// The wire, or TLS over it.
    transport: Pin<Box<dyn Transport>>,
    /// Read to tell the versions of HTTP apart, and still to be handed over.
    unread: Vec<u8>,
    /// Of output that goes a byte at a time: until the next byte.
    pause: Option<Pin<Box<Until>>>,
    /// Once HTTP/2 is spoken.
    refused: Option<RefusedStreams>,
    /// ALPN chose it.
    chose_http2: bool,
}

impl Io {
    /// `None`: the client does not speak TLS, or left.
    pub async fn open(connection: &Rc<Connection>, socket: &Rc<TcpStream>) -> Option<Self> {
        let counters = &connection.thread.counters;
        let wire = Wire {
            socket: Rc::clone(socket),
            counters: Arc::clone(counters),
        };
        let mut chose_http2 = false;
        let transport: Pin<Box<dyn Transport>> = match &connection.thread.shared.tls {
            None => Box::pin(wire),
            Some(config) => {
                let acceptor = TlsAcceptor::from(Arc::clone(config));
                match acceptor.accept(wire).into_fallible().await {
                    Ok(stream) => {
                        let tls = stream.get_ref().1;
                        let is_resumed = tls.handshake_kind() == Some(HandshakeKind::Resumed);
                        chose_http2 = tls.alpn_protocol() == Some(b"h2");
                        counters.tls_handshakes.add(1);
                        counters.tls_resumptions.add(u64::from(is_resumed));
                        Box::pin(stream)
                    }
                    Err((error, mut wire)) => {
                        count_tls_error(&error, counters);
                        // The alert is sent; a failure changes nothing.
                        let _ = wire.shutdown().await;
                        return None;
                    }
                }
            }
        };
        Some(Self {
            connection: Rc::clone(connection),
            transport,
            unread: Vec::new(),
            pause: None,
            refused: None,
            chose_http2,
        })
    }

    /// Whether the client speaks HTTP/2: ALPN chose it, or it begins with the preface (RFC 9113, section 3.4).
    pub async fn speaks_http2(&mut self) -> bool {
        let (mut begin, mut length) = ([0; PREFACE.len()], 0);
        while !self.chose_http2 && length < begin.len() && PREFACE.starts_with(&begin[..length]) {
            match self.read(&mut begin[length..]).await {
                Ok(read) if read > 0 => length += read,
                _ => break,
            }
        }
        let speaks_http2 = self.chose_http2 || begin == PREFACE;
        self.unread = begin[..length].to_vec();
        self.refused = speaks_http2.then(RefusedStreams::default);
        speaks_http2
    }

    fn write_now(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let thread = &self.connection.thread;
        let drip_ns = self.connection.drip_ns.get();
        let mut most = bytes.len();
        if drip_ns.is_some() {
            most = most.min(1);
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
            }
        }
        let length = ready!(self.transport.as_mut().poll_write(context, &bytes[..most]))?;
        self.pause = drip_ns.map(|drip_ns| {
            let now_ns = || thread.shared.clock.now_ns();
            let from_ns = self
                .pause
                .as_ref()
                .map_or_else(now_ns, |last| last.due_ns());
            Box::pin(thread.timers.until(from_ns + drip_ns))
        });
        if let Some(refused) = &mut self.refused {
            let refused = refused.count(&bytes[..length]);
            thread.counters.streams_refused.add(refused);
        }
        Poll::Ready(Ok(length))
    }
}

fn count_tls_error(error: &io::Error, counters: &Counters) {
    if error.kind() == io::ErrorKind::InvalidData {
        counters.tls_errors.add(1);
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.unread.is_empty() {
            let take = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread[..take]);
            this.unread.drain(..take);
            return Poll::Ready(Ok(()));
        }
        let from = buffer.filled().len();
        let read = ready!(this.transport.as_mut().poll_read(context, buffer));
        let thread = &this.connection.thread;
        if let Err(error) = &read {
            count_tls_error(error, &thread.counters);
        }
        if let Some(recorder) = &thread.shared.recorder {
            recorder.write(&buffer.filled()[from..]);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.write_now(context, bytes);
        self.connection.is_blocked.set(written.is_pending());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.transport.as_mut().poll_flush(context);
        self.connection.is_blocked.set(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.as_mut().poll_shutdown(context)
    }
}
