//! How connections end, as their peers see it.

use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::time::Duration;

use super::epoll::Epoll;
use super::sys::monotonic_ns;
use super::uring::Uring;
use super::*;

/// `None` only where the host has or allows no io_uring.
pub(super) fn driver_on_this_host<D: Driver>(config: Config) -> Option<D> {
    let missing = |error: &io::Error| {
        let code = error.raw_os_error();
        D::NAME == Uring::NAME && matches!(code, Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
    };
    match D::new(config) {
        Ok(driver) => Some(driver),
        Err(error) if missing(&error) => {
            println!("{} is not tested here: {error}", D::NAME);
            None
        }
        Err(error) => panic!("{}: {error}", D::NAME),
    }
}

/// What the peer of a connection reads when that is closed, while another one stays open.
fn peer_reads<D: Driver>(resets: bool) -> Option<io::Result<usize>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::new(listener.local_addr().unwrap());
    let config = Config {
        resets,
        ..Config::new(2, vec![address])
    };
    let mut driver = driver_on_this_host::<D>(config)?;
    for conn in [0, 1] {
        driver.connect(conn, 0);
        let until_ns = monotonic_ns() + 10_000_000_000;
        loop {
            assert!(monotonic_ns() < until_ns, "not connected");
            driver.wait(Some(until_ns)).unwrap();
            if let Some(event) = driver.next() {
                assert!(matches!(event, NetEvent::Connected(of) if of == conn));
                break;
            }
        }
    }
    let (_open, _) = listener.accept().unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    driver.close(1);
    driver.wait(Some(0)).unwrap();
    // The driver goes on only now and then: the end does not wait for it.
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    Some(peer.read(&mut [0; 1]))
}

#[test]
fn the_end_of_a_connection_reaches_its_peer_while_another_receives() {
    for read in [peer_reads::<Epoll>(false), peer_reads::<Uring>(false)] {
        assert!(read.is_none_or(|read| matches!(read, Ok(0))));
    }
}

#[test]
fn a_connection_that_resets_says_so_to_its_peer() {
    for read in [peer_reads::<Epoll>(true), peer_reads::<Uring>(true)] {
        let is_reset = |read: io::Result<usize>| {
            read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
        };
        assert!(read.is_none_or(is_reset));
    }
}
