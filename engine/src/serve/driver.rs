//! Which loop serves: io_uring where it does the whole round, epoll anywhere. It knows nothing of what is served.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::net::acceptor::{Acceptor, Happening};
use crate::net::sys::monotonic_ns;

/// What `--driver` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverChoice {
    #[default]
    Auto,
    IoUring,
    Epoll,
}

impl DriverChoice {
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::IoUring),
            "epoll" => Ok(Self::Epoll),
            _ => Err("expected auto, io_uring or epoll".to_owned()),
        }
    }
}

/// The loop that is used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub name: &'static str,
    pub reason: String,
}

pub const IO_URING: &str = "io_uring";
pub const EPOLL: &str = "epoll";

/// Chooses by probing; one that was asked for and does not work is refused with one sentence.
pub fn choose(choice: DriverChoice) -> Result<Chosen, String> {
    let chosen = |name, reason: &str| Chosen {
        name,
        reason: reason.to_owned(),
    };
    match choice {
        DriverChoice::Epoll => Ok(chosen(EPOLL, "asked for")),
        DriverChoice::IoUring => match round_trip() {
            Ok(()) => Ok(chosen(IO_URING, "asked for")),
            Err(reason) => Err(format!(
                "--driver io_uring: does not work on this host: {reason}; give epoll or auto"
            )),
        },
        DriverChoice::Auto => Ok(match round_trip() {
            Ok(()) => chosen(IO_URING, "probe succeeded"),
            Err(reason) => chosen(
                EPOLL,
                &format!("io_uring does not work on this host: {reason}"),
            ),
        }),
    }
}

/// Accepts, receives, sends and resets over loopback, within a second: a kernel may know a call and still forbid it.
fn round_trip() -> Result<(), String> {
    let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed("no loopback socket"))?;
    let mut acceptor = Acceptor::new(8).map_err(failed("the kernel refuses to set it up"))?;
    acceptor.accept(listener.as_fd(), true);
    let address = listener
        .local_addr()
        .map_err(failed("no loopback socket"))?;
    let mut peer = TcpStream::connect(address).map_err(failed("no loopback connection"))?;
    peer.set_read_timeout(Some(Duration::from_secs(1)))
        .and_then(|()| peer.write_all(b"ping"))
        .map_err(failed("no loopback connection"))?;
    let limit_ns = monotonic_ns() + 1_000_000_000;
    while monotonic_ns() < limit_ns {
        acceptor
            .wait(Some(limit_ns))
            .map_err(failed("waiting failed"))?;
        while let Some(happening) = acceptor.next() {
            match happening {
                Happening::Accepted(slot) => acceptor.receive(u64::from(slot)),
                Happening::Received(key, buffer, length) => {
                    let mut bytes = acceptor.bytes(buffer, length).to_vec();
                    acceptor.release(buffer);
                    acceptor.send(key, &mut bytes, false);
                }
                Happening::Sent(key, ..) => {
                    acceptor.arm_reset(key);
                    acceptor.close(key, true, None);
                    acceptor.submit().map_err(failed("closing failed"))?;
                    return expect_pong_and_reset(&mut peer, &mut acceptor);
                }
                Happening::NotAccepted(code) | Happening::Silent(_, code) => {
                    let error = std::io::Error::from_raw_os_error(code);
                    return Err(format!("a round over loopback failed: {error}"));
                }
                Happening::Mail => {}
            }
        }
    }
    Err("a round over loopback did not end within a second".to_owned())
}

fn expect_pong_and_reset(peer: &mut TcpStream, acceptor: &mut Acceptor) -> Result<(), String> {
    // Lets what was cancelled end, and with it the last use of the socket.
    let _ = acceptor.wait(Some(monotonic_ns() + 50_000_000));
    let mut pong = [0; 4];
    match peer.read_exact(&mut pong) {
        Ok(()) if &pong == b"ping" => {}
        Ok(()) => return Err("the bytes received are not those sent".to_owned()),
        Err(error) => return Err(format!("the bytes sent did not arrive: {error}")),
    }
    match peer.read(&mut pong) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        other => Err(format!(
            "a connection cannot be reset (Linux 6.7 can): {other:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_uring_makes_the_round_or_says_why_not() {
        if let Err(reason) = round_trip() {
            println!("io_uring is not available here: {reason}");
            assert!(!reason.is_empty());
        }
    }

    #[test]
    fn epoll_is_taken_when_asked_for() {
        let chosen = choose(DriverChoice::parse("epoll").unwrap()).unwrap();
        assert_eq!((chosen.name, chosen.reason.as_str()), (EPOLL, "asked for"));
        assert!(DriverChoice::parse("kqueue").is_err());
    }
}
