//! Where to connect: an IP address and port, or a Unix socket, in the kernel's form.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};

/// The longest path of a Unix socket; a zero byte follows it.
pub const UNIX_PATH_BYTES: usize = 107;

/// A resolved address.
#[derive(Clone, PartialEq)]
pub struct Address {
    shown: Shown,
    any: SocketAddrAny,
}

#[derive(Clone, PartialEq)]
enum Shown {
    Ip(SocketAddr),
    Unix(String),
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.shown {
            Shown::Ip(address) => address.fmt(formatter),
            Shown::Unix(path) => write!(formatter, "unix:{path}"),
        }
    }
}

impl Address {
    pub fn new(shown: SocketAddr) -> Self {
        Self {
            shown: Shown::Ip(shown),
            any: shown.into(),
        }
    }

    /// A Unix socket by its path; `None` for a path that is too long or holds a zero byte.
    pub fn unix(path: &str) -> Option<Self> {
        let address = SocketAddrUnix::new(path).ok()?;
        Some(Self {
            shown: Shown::Unix(path.to_owned()),
            any: address.into(),
        })
    }

    /// `None` for a Unix socket.
    pub fn ip(&self) -> Option<std::net::IpAddr> {
        match &self.shown {
            Shown::Ip(address) => Some(address.ip()),
            Shown::Unix(_) => None,
        }
    }

    /// `None` for a Unix socket.
    pub fn socket(&self) -> Option<SocketAddr> {
        match &self.shown {
            Shown::Ip(address) => Some(*address),
            Shown::Unix(_) => None,
        }
    }

    pub fn is_unix(&self) -> bool {
        matches!(self.shown, Shown::Unix(_))
    }

    pub(super) fn family(&self) -> AddressFamily {
        self.any.address_family()
    }

    pub(super) fn any(&self) -> &SocketAddrAny {
        &self.any
    }

    /// As the kernel reads it, for as long as this value lives.
    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        self.any.as_ptr().cast()
    }

    pub(super) fn length(&self) -> libc::socklen_t {
        self.any.addr_len()
    }
}

/// Every address that the resolver gives for a host (an IP address without brackets).
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<Address>> {
    let mut seen = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !seen.contains(&address) {
            seen.push(address);
        }
    }
    Ok(seen.into_iter().map(Address::new).collect())
}
