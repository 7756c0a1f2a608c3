//! The listening socket.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{listen, sockopt};

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

fn open_tcp(address: &SocketAddr) -> io::Result<(OwnedFd, String)> {
    let socket = TcpListener::bind(address)?;
    // Accepted sockets inherit this, which spares a call for each of them.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let bound = socket.local_addr()?;
    listening(socket.into(), bound.to_string())
}

/// With a longer queue than the standard library's.
fn listening(socket: OwnedFd, address: String) -> io::Result<(OwnedFd, String)> {
    listen(&socket, BACKLOG)?;
    Ok((socket, address))
}

fn tcp_sentence(address: &SocketAddr, error: io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is taken by another process: stop that one, or give another port (0 picks a free one)"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("{address} is not an address of this host: give one of its own, or 0.0.0.0")
        }
        ErrorKind::PermissionDenied => {
            format!("listening on {address} is not permitted: give a port above 1023")
        }
        _ => format!("cannot listen on {address}: {error}"),
    }
}

fn open_unix(path: &Path) -> io::Result<(OwnedFd, String)> {
    let socket = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    listening(socket.into(), format!("unix:{}", path.display()))
}

/// Whether a socket file is there at which nobody listens, as a killed server leaves it.
fn is_left_behind(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let is_refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(is_refused)
}

fn unix_sentence(path: &Path, error: io::Error) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!(
                "{path} is taken by another process or is no socket: remove it, or give another path"
            )
        }
        ErrorKind::NotFound => {
            format!("{path} lies in a folder that does not exist: create it, or give another path")
        }
        ErrorKind::InvalidInput => {
            format!("{path} is too long for a Unix socket: give a path of at most 107 bytes")
        }
        _ => format!("cannot listen on {path}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
