//! Which drivers work on this host. Each completes one round trip over loopback, because a kernel
//! may offer a system call and still forbid it (containers, seccomp, sysctl `io_uring_disabled`).

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::address::Address;
use super::epoll::Epoll;
use super::sys::monotonic_ns;
use super::uring::Uring;
use super::{Config, Driver, NetEvent, Payload};

/// What one driver's probe found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DriverProbe {
    pub driver: String,
    pub works: bool,
    /// Why not, or that it does.
    pub reason: String,
    /// The kernel features it uses.
    pub features: Vec<String>,
}

const URING_FEATURES: &[&str] = &[
    "single issuer and deferred task run (Linux 6.1)",
    "direct descriptors (5.19)",
    "provided buffer ring (5.19)",
    "multishot receive (6.0)",
    "no event for a send that succeeded (5.17)",
    "wait with a time limit (5.11)",
];
const EPOLL_FEATURES: &[&str] = &[
    "edge-triggered epoll (2.6)",
    "epoll_pwait2 where there is one (5.11)",
];

/// Probes both drivers.
pub fn all() -> Vec<DriverProbe> {
    vec![
        report::<Uring>(URING_FEATURES),
        report::<Epoll>(EPOLL_FEATURES),
    ]
}

fn report<D: Driver>(features: &[&str]) -> DriverProbe {
    let result = round_trip::<D>();
    DriverProbe {
        driver: D::NAME.to_owned(),
        works: result.is_ok(),
        reason: result.map_or_else(|reason| reason, |()| "probe succeeded".to_owned()),
        features: features
            .iter()
            .map(|feature| (*feature).to_owned())
            .collect(),
    }
}

/// Connects, sends, receives and sees the end, within a second.
pub fn round_trip<D: Driver>() -> Result<(), String> {
    let explain = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    let listener = match TcpListener::bind("127.0.0.1:0") {
        Ok(listener) => listener,
        // A host that has run out of ports says nothing about the driver beyond whether it can be
        // set up.
        Err(error) if is_out_of_ports(error.raw_os_error()) => {
            return set_up::<D>(Vec::new()).map(drop);
        }
        Err(error) => return Err(explain("no loopback socket")(error)),
    };
    let address = listener
        .local_addr()
        .map_err(explain("no loopback socket"))?;
    let mut driver = set_up::<D>(vec![Address::new(address)])?;
    driver.connect(0, 0);
    let limit = monotonic_ns() + 1_000_000_000;
    let mut received = Vec::new();
    while monotonic_ns() < limit {
        driver
            .wait(Some(limit))
            .map_err(explain("waiting failed"))?;
        while let Some(event) = driver.next() {
            match event {
                NetEvent::Connected(_) => {
                    driver.send(0, Payload::Fixed(0));
                    driver.flush().map_err(explain("sending failed"))?;
                    let (mut peer, _) = listener.accept().map_err(explain("accepting failed"))?;
                    peer.set_read_timeout(Some(Duration::from_secs(1)))
                        .map_err(explain("no loopback socket"))?;
                    let mut request = [0; 4];
                    peer.read_exact(&mut request)
                        .map_err(explain("the bytes sent did not arrive"))?;
                    peer.write_all(&request)
                        .map_err(explain("answering failed"))?;
                }
                NetEvent::Received(bytes) => {
                    received.extend_from_slice(driver.bytes(&bytes));
                    driver.release(bytes);
                }
                NetEvent::Closed(_) if received == b"ping" => {
                    driver.close(0);
                    return Ok(());
                }
                NetEvent::Closed(_) => refuse! { "the bytes received are not those sent" },
                NetEvent::ConnectFailed(_, code) if is_out_of_ports(Some(code)) => return Ok(()),
                NetEvent::ConnectFailed(_, code)
                | NetEvent::Broken(_, _, code)
                | NetEvent::Refused(_, code) => refuse! {
                    "a round over loopback failed: {}", io::Error::from_raw_os_error(code)
                },
                _ => {}
            }
        }
    }
    Err("a round over loopback did not end within a second".to_owned())
}

fn set_up<D: Driver>(addresses: Vec<Address>) -> Result<D, String> {
    let config = Config {
        fixed: Arc::from(vec![b"ping".to_vec()]),
        receive_stamps: true,
        ..Config::new(1, addresses)
    };
    D::new(config).map_err(|error| format!("the kernel refuses to set it up: {error}"))
}

fn is_out_of_ports(code: Option<i32>) -> bool {
    matches!(code, Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::driver_on_this_host;

    #[test]
    fn epoll_makes_the_round() {
        assert_eq!(round_trip::<Epoll>(), Ok(()));
    }

    #[test]
    fn io_uring_makes_the_round() {
        let made = driver_on_this_host::<Uring>(Config::new(1, Vec::new()));
        assert_eq!(round_trip::<Uring>().is_ok(), made.is_some());
    }
}
