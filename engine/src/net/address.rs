//! Where to connect: a socket address resolved once, in the form the kernel wants. It knows nothing of connections.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// A resolved address.
#[derive(Clone)]
pub struct Address {
    shown: SocketAddr,
    raw: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shown.fmt(formatter)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shown.fmt(formatter)
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
            shown,
            raw,
            length: length as libc::socklen_t,
        }
    }

    pub fn ip(&self) -> std::net::IpAddr {
        self.shown.ip()
    }

    pub fn is_ipv4(&self) -> bool {
        self.shown.is_ipv4()
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
