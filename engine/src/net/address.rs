//! Where to connect: an IP address and port, or a Unix socket, resolved once, in the form the kernel wants. It knows nothing of connections.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The longest path of a Unix socket; a zero byte follows it.
pub const UNIX_PATH_BYTES: usize = 107;

/// A resolved address.
#[derive(Clone)]
pub struct Address {
    shown: Shown,
    raw: libc::sockaddr_storage,
    length: libc::socklen_t,
}

#[derive(Clone)]
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
        // SAFETY: sockaddr_storage is plain data for which all zeros is a valid value.
        let mut raw: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let length = match shown {
            SocketAddr::V4(v4) => {
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(v4.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is at least as large and as strictly aligned as sockaddr_in.
                unsafe { (&raw mut raw).cast::<libc::sockaddr_in>().write(address) };
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let address = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: sockaddr_storage is at least as large and as strictly aligned as sockaddr_in6.
                unsafe { (&raw mut raw).cast::<libc::sockaddr_in6>().write(address) };
                size_of::<libc::sockaddr_in6>()
            }
        };
        Self {
            shown: Shown::Ip(shown),
            raw,
            length: length as libc::socklen_t,
        }
    }

    /// A Unix socket by its path; `None` for a path that is too long or holds a zero byte.
    pub fn unix(path: &str) -> Option<Self> {
        if path.len() > UNIX_PATH_BYTES || path.bytes().any(|byte| byte == 0) {
            return None;
        }
        let mut address = libc::sockaddr_un {
            sun_family: libc::AF_UNIX as libc::sa_family_t,
            sun_path: [0; UNIX_PATH_BYTES + 1],
        };
        for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
            *place = byte as libc::c_char;
        }
        // SAFETY: sockaddr_storage is plain data for which all zeros is a valid value.
        let mut raw: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: sockaddr_storage is at least as large and as strictly aligned as sockaddr_un.
        unsafe { (&raw mut raw).cast::<libc::sockaddr_un>().write(address) };
        Some(Self {
            shown: Shown::Unix(path.to_owned()),
            raw,
            length: size_of::<libc::sockaddr_un>() as libc::socklen_t,
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

    pub(super) fn family(&self) -> i32 {
        i32::from(self.raw.ss_family)
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.raw).cast()
    }

    pub(super) fn length(&self) -> libc::socklen_t {
        self.length
    }
}

/// Resolves a host (a name, or an IP address without brackets) and a port, once; every address the resolver gives.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<Address>> {
    let mut seen = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !seen.contains(&address) {
            seen.push(address);
        }
    }
    Ok(seen.into_iter().map(Address::new).collect())
}
