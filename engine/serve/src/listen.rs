//! The listening socket, and which thread takes the next connection.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    socket_with, sockopt,
};

use super::counters::Counters;

/// The kernel lowers this to what `net.core.somaxconn` allows.
const BACKLOG: i32 = 65_535;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ListenAddress {
    /// Reads `IP:PORT`.
    pub fn tcp(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Tcp).map_err(|_| {
            format!(
                "--listen {text} is not an address: give IP:PORT, e.g. 127.0.0.1:8080 or [::1]:0"
            )
        })
    }

    /// Opens the listening socket and says where it is; the error is one sentence.
    pub fn open(&self) -> Result<(OwnedFd, String), String> {
        match self {
            Self::Tcp(address) => open_tcp(address).map_err(|error| tcp_sentence(address, error)),
            Self::Unix(path) => open_unix(path).map_err(|error| unix_sentence(path, error)),
        }
    }
}

fn stream_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, None)
}

fn open_tcp(address: &SocketAddr) -> Result<(OwnedFd, String), Errno> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = stream_socket(family)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Accepted sockets inherit this, which spares a call for each of them.
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, address)?;
    listen(&socket, BACKLOG)?;
    let bound: SocketAddr = getsockname(&socket)?.try_into()?;
    Ok((socket, bound.to_string()))
}

fn tcp_sentence(address: &SocketAddr, error: Errno) -> String {
    match error {
        Errno::ADDRINUSE => format!(
            "{address} is taken by another process: stop that one, or give another port (0 picks a free one)"
        ),
        Errno::ADDRNOTAVAIL => {
            format!("{address} is not an address of this host: give one of its own, or 0.0.0.0")
        }
        Errno::ACCESS => format!("listening on {address} is not permitted: give a port above 1023"),
        other => format!("cannot listen on {address}: {other}"),
    }
}

fn open_unix(path: &Path) -> Result<(OwnedFd, String), Errno> {
    let name = SocketAddrUnix::new(path)?;
    let socket = stream_socket(AddressFamily::UNIX)?;
    match bind(&socket, &name) {
        Err(Errno::ADDRINUSE) if is_left_behind(path, &name)? => {
            std::fs::remove_file(path)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            bind(&socket, &name)?;
        }
        bound => bound?,
    }
    listen(&socket, BACKLOG)?;
    Ok((socket, format!("unix:{}", path.display())))
}

/// Whether a socket file is there at which nobody listens, as a killed server leaves it.
fn is_left_behind(path: &Path, name: &SocketAddrUnix) -> Result<bool, Errno> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    Ok(is_socket && connect(&stream_socket(AddressFamily::UNIX)?, name) == Err(Errno::CONNREFUSED))
}

fn unix_sentence(path: &Path, error: Errno) -> String {
    let path = path.display();
    match error {
        Errno::ADDRINUSE => {
            format!(
                "{path} is taken by another process or is no socket: remove it, or give another path"
            )
        }
        Errno::NOENT => {
            format!("{path} lies in a folder that does not exist: create it, or give another path")
        }
        Errno::NAMETOOLONG => {
            format!("{path} is too long for a Unix socket: give a path of at most 107 bytes")
        }
        other => format!("cannot listen on {path}: {other}"),
    }
}

/// The listening socket, which spreads connections evenly over the threads. Only one thread at a
/// time is armed: it accepts one connection and arms the thread with the fewest open ones. With
/// `SO_REUSEPORT` a hash of the addresses would decide, and ten connections over two threads could
/// become eight and two.
#[derive(Debug)]
pub struct Listener {
    listener: OwnedFd,
    /// By thread.
    epolls: Vec<OwnedFd>,
}

impl Listener {
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

/// The thread that accepts next after `current`: the one with the fewest open connections, the
/// nearest in turn among equals.
pub fn next_thread<C: AsRef<Counters>>(counters: &[C], current: usize) -> usize {
    let threads = counters.len();
    (1..=threads)
        .map(|action| (current + action) % threads)
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

    fn refused(place: Result<ListenAddress, String>) -> String {
        place.and_then(|place| place.open()).unwrap_err()
    }

    #[test]
    fn addresses_that_cannot_be_are_refused_with_a_sentence() {
        assert!(refused(ListenAddress::tcp("localhost")).contains("IP:PORT"));
        assert!(refused(ListenAddress::tcp("192.0.2.1:0")).contains("not an address of this host"));
        let (_held, address) = ListenAddress::tcp("127.0.0.1:0").unwrap().open().unwrap();
        assert!(refused(ListenAddress::tcp(&address)).contains("taken by another process"));
    }

    #[test]
    fn a_socket_file_that_was_left_behind_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = ListenAddress::Unix(folder.path().join("socket"));
        let (held, _) = place.open().unwrap();
        assert!(refused(Ok(place.clone())).contains("taken"));
        drop(held);
        assert!(place.open().is_ok());
        let file = folder.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        assert!(refused(Ok(ListenAddress::Unix(file.clone()))).contains("is no socket"));
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
        assert!(
            refused(Ok(ListenAddress::Unix(folder.path().join("no/socket"))))
                .contains("does not exist")
        );
        assert!(
            refused(Ok(ListenAddress::Unix(folder.path().join("x".repeat(200)))))
                .contains("107 bytes")
        );
    }
}
