//! The listening socket, and which thread takes the next connection.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt,
};

use super::counters::Counters;

/// The kernel lowers this to what `net.core.somaxconn` allows.
const BACKLOG: i32 = 65_535;

/// Opens the listening socket; the error is one sentence.
pub fn open(text: &str) -> Result<(OwnedFd, SocketAddr), String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("--listen {text} is not an address: give IP:PORT, e.g. 127.0.0.1:8080 or [::1]:0")
    })?;
    let opened = || -> Result<(OwnedFd, SocketAddr), Errno> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Accepted sockets inherit this, which spares a call for each of them.
        sockopt::set_tcp_nodelay(&socket, true)?;
        bind(&socket, &address)?;
        listen(&socket, BACKLOG)?;
        let bound = getsockname(&socket)?.try_into()?;
        Ok((socket, bound))
    };
    opened().map_err(|error| match error {
        Errno::ADDRINUSE => {
            format!("{address} is taken by another process: stop that one, or give another port (0 picks a free one)")
        }
        Errno::ADDRNOTAVAIL => format!("{address} is not an address of this host: give one of its own, or 0.0.0.0"),
        Errno::ACCESS => format!("listening on {address} is not permitted: give a port above 1023"),
        other => format!("cannot listen on {address}: {other}"),
    })
}

/// Gives the connections out evenly. All threads wait on one listening socket, but only one at a time is armed: it
/// accepts one connection and passes the turn to the thread with the fewest open ones. `SO_REUSEPORT` would let a hash
/// of the addresses decide, and ten connections over two threads could come out as eight and two.
#[derive(Debug)]
pub struct Door {
    listener: OwnedFd,
    /// By thread.
    epolls: Vec<OwnedFd>,
}

impl Door {
    pub fn new(listener: OwnedFd, epolls: Vec<OwnedFd>, data: u64) -> Result<Self, Errno> {
        for (thread, epoll) in epolls.iter().enumerate() {
            let flags = if thread == 0 {
                Self::armed(epolls.len())
            } else {
                EventFlags::ONESHOT
            };
            epoll::add(epoll, &listener, EventData::new_u64(data), flags)?;
        }
        Ok(Self { listener, epolls })
    }

    /// A lone thread stays armed; among several, being told once disarms.
    fn armed(threads: usize) -> EventFlags {
        if threads == 1 {
            EventFlags::IN
        } else {
            EventFlags::IN | EventFlags::ONESHOT
        }
    }

    pub fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    pub fn epoll(&self, thread: usize) -> &OwnedFd {
        &self.epolls[thread]
    }

    pub fn is_shared(&self) -> bool {
        self.epolls.len() > 1
    }

    pub fn arm(&self, thread: usize, data: u64) -> Result<(), Errno> {
        epoll::modify(
            &self.epolls[thread],
            &self.listener,
            EventData::new_u64(data),
            Self::armed(self.epolls.len()),
        )
    }

    /// Nobody accepts until the next `arm`.
    pub fn disarm(&self, thread: usize, data: u64) -> Result<(), Errno> {
        epoll::modify(
            &self.epolls[thread],
            &self.listener,
            EventData::new_u64(data),
            EventFlags::ONESHOT,
        )
    }
}

/// Who takes the next connection after `current`: the thread with the fewest open ones, the nearest in turn among
/// equals.
pub fn next_thread<C: AsRef<Counters>>(counters: &[C], current: usize) -> usize {
    let threads = counters.len();
    (1..=threads)
        .map(|step| (current + step) % threads)
        .min_by_key(|thread| counters[*thread].as_ref().connections_open.get())
        .unwrap_or(current)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn connections_are_spread_evenly() {
        let counters: Vec<Arc<Counters>> = (0..3).map(|_| Arc::default()).collect();
        let mut thread = 0;
        for _ in 0..10 {
            thread = next_thread(&counters, thread);
            counters[thread].connections_open.add(1);
        }
        let mut open: Vec<u64> = counters
            .iter()
            .map(|thread| thread.connections_open.get())
            .collect();
        open.sort_unstable();
        assert_eq!(open, [3, 3, 4]);
        // A thread that lost its connections gets the next ones.
        counters[1].connections_open.subtract(3);
        assert_eq!(
            (next_thread(&counters, 0), next_thread(&counters, 1)),
            (1, 1)
        );
    }

    #[test]
    fn addresses_that_cannot_be_are_refused_with_a_sentence() {
        assert!(open("localhost").unwrap_err().contains("IP:PORT"));
        assert!(
            open("192.0.2.1:0")
                .unwrap_err()
                .contains("not an address of this host")
        );
        let (_held, address) = open("127.0.0.1:0").unwrap();
        assert!(
            open(&address.to_string())
                .unwrap_err()
                .contains("taken by another process")
        );
    }
}
