//! When the kernel took in what a connection reads (SO_TIMESTAMPNS). Asked of few connections of a
//! thread, because each of their reads costs more. It must not know what the times are for.

use std::os::fd::AsFd;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::sys::{monotonic_ns, stamp_arrivals, unix_ns};
use super::{Config, ConnId};

/// One connection in so many has its reads stamped.
const STAMPED_IN: u32 = 16;

/// Room for one stamp among control data: `struct cmsghdr` and `struct timespec`.
pub(super) const CONTROL_BYTES: usize = 32;
const HEADER_BYTES: usize = 16;

const _: () = assert!(HEADER_BYTES == size_of::<libc::cmsghdr>());
const _: () = assert!(CONTROL_BYTES == HEADER_BYTES + size_of::<libc::timespec>());

/// Two readings of the clocks that lie further apart were interrupted between them.
const LONGEST_READING_NS: u64 = 2_000;

/// Control data of one read, aligned as the kernel writes it.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub(super) struct Control(pub [u8; CONTROL_BYTES]);

/// Whether this connection is one of those whose reads the kernel is to stamp.
pub(super) fn is_asked(config: &Config, conn: ConnId, address: usize) -> bool {
    // The kernel stamps packets, and a Unix socket has none.
    config.receive_stamps
        && is_drawn(config.seed, conn, config.connections as u32)
        && !config.addresses[address].is_unix()
}

/// Asks the kernel to stamp what this connection reads, where it is one of those; whether it does.
pub(super) fn ask(config: &Config, conn: ConnId, address: usize, socket: impl AsFd) -> bool {
    is_asked(config, conn, address) && stamp_arrivals(socket.as_fd()).is_ok()
}

/// One in each row of [`STAMPED_IN`] is drawn: those of one server often lie at equal distances.
fn is_drawn(seed: u64, conn: ConnId, connections: u32) -> bool {
    let (row, place) = (conn / STAMPED_IN, conn % STAMPED_IN);
    let length = STAMPED_IN.min(connections.max(1) - row * STAMPED_IN);
    let mut rng = SmallRng::seed_from_u64(seed.wrapping_add(u64::from(row)));
    rng.random_range(0..length) == place
}

/// When the last packet of a read had come, by the monotonic clock; from the read's control data.
/// `None`: it holds no stamp, or the stamp cannot be placed on that clock.
pub(super) fn arrived_ns(control: &[u8]) -> Option<u64> {
    let stamp_ns = stamp_unix_ns(control)?;
    let before_ns = monotonic_ns();
    let wall_ns = unix_ns();
    let after_ns = monotonic_ns();
    placed_ns(stamp_ns, before_ns, wall_ns, after_ns)
}

/// The stamp among control data, by the wall clock.
fn stamp_unix_ns(control: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        Some(u64::from_ne_bytes(
            control.get(at..at + 8)?.try_into().ok()?,
        ))
    };
    let half = |at: usize| {
        Some(i32::from_ne_bytes(
            control.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    let whole = word(0)? >= CONTROL_BYTES as u64;
    if !whole || half(8)? != libc::SOL_SOCKET || half(12)? != libc::SCM_TIMESTAMPNS {
        return None;
    }
    word(HEADER_BYTES)?
        .checked_mul(1_000_000_000)?
        .checked_add(word(HEADER_BYTES + 8)?)
}

/// A stamp of the wall clock on the monotonic one, from a reading of the former between two of the
/// latter. `None` where the thread was interrupted between them, or the wall clock was set back.
fn placed_ns(stamp_ns: u64, before_ns: u64, wall_ns: u64, after_ns: u64) -> Option<u64> {
    if after_ns.saturating_sub(before_ns) > LONGEST_READING_NS {
        return None;
    }
    before_ns.checked_sub(wall_ns.checked_sub(stamp_ns)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::net::address::Address;
    use crate::net::epoll::Epoll;
    use crate::net::tests::driver_on_this_host;
    use crate::net::uring::Uring;
    use crate::net::{Driver, NetEvent};

    fn control(level: i32, kind: i32, seconds: u64, ns: u64) -> Vec<u8> {
        let mut bytes = (CONTROL_BYTES as u64).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(seconds.to_ne_bytes());
        bytes.extend(ns.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_stamp_is_read_and_anything_else_is_none() {
        let stamp = control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, 12, 345);
        assert_eq!(stamp_unix_ns(&stamp), Some(12_000_000_345));
        assert_eq!(stamp_unix_ns(&stamp[..31]), None);
        assert_eq!(stamp_unix_ns(&[]), None);
        assert_eq!(stamp_unix_ns(&[0; CONTROL_BYTES]), None);
        let rights = control(libc::SOL_SOCKET, libc::SCM_RIGHTS, 12, 345);
        assert_eq!(stamp_unix_ns(&rights), None);
    }

    #[test]
    fn a_stamp_is_as_old_by_the_monotonic_clock_as_by_the_wall_clock() {
        assert_eq!(placed_ns(900, 5_000, 1_000, 5_040), Some(4_900));
        // The wall clock was set back after the packet came.
        assert_eq!(placed_ns(1_001, 5_000, 1_000, 5_040), None);
        // The thread was interrupted between the readings.
        assert_eq!(placed_ns(900, 5_000, 9_000_000, 9_000_000), None);
        // Set ahead by more than the host has been up.
        assert_eq!(placed_ns(0, 5_000, 6_000, 5_040), None);
    }

    const SEED: u64 = 7;

    #[test]
    fn one_connection_of_each_row_is_drawn_and_not_always_the_same() {
        let drawn = |seed: u64, connections: u32| -> Vec<ConnId> {
            (0..connections)
                .filter(|conn| is_drawn(seed, *conn, connections))
                .collect()
        };
        for connections in [1, 3, 16, 17, 160] {
            let found = drawn(1, connections);
            let rows: Vec<u32> = found.iter().map(|conn| conn / STAMPED_IN).collect();
            let all: Vec<u32> = (0..connections.div_ceil(STAMPED_IN)).collect();
            assert_eq!(rows, all, "{connections}");
        }
        let places: BTreeSet<u32> = drawn(1, 1600).iter().map(|conn| conn % 16).collect();
        assert!(places.len() > 10, "{places:?}");
        assert_ne!(drawn(1, 1600), drawn(2, 1600));
    }

    const LATE_NS: u64 = 20_000_000;

    fn next<D: Driver>(driver: &mut D) -> NetEvent {
        let until_ns = monotonic_ns() + 10_000_000_000;
        loop {
            assert!(monotonic_ns() < until_ns, "nothing happened");
            if let Some(event) = driver.next() {
                return event;
            }
            driver.wait(Some(until_ns)).unwrap();
        }
    }

    /// What is written is read 20 ms later.
    fn looks_late<D: Driver>(conn: ConnId) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::new(listener.local_addr().unwrap());
        let config = Config {
            receive_stamps: true,
            seed: SEED,
            ..Config::new(32, vec![address])
        };
        let Some(mut driver) = driver_on_this_host::<D>(config) else {
            return;
        };
        driver.connect(conn, 0);
        assert!(matches!(next(&mut driver), NetEvent::Connected(of) if of == conn));
        let (mut peer, _) = listener.accept().unwrap();
        let asked = is_drawn(SEED, conn, 32);
        // The kernel begins to stamp in the background.
        let until_ns = monotonic_ns() + 10_000_000_000;
        loop {
            peer.write_all(b"early").unwrap();
            let NetEvent::Received(received) = next(&mut driver) else {
                panic!("bytes were sent");
            };
            let stamped = driver.arrived_ns(&received).is_some();
            driver.release(received);
            if stamped == asked {
                break;
            }
            assert!(monotonic_ns() < until_ns, "the kernel stamps nothing");
        }
        loop {
            let from_ns = monotonic_ns();
            peer.write_all(b"hello").unwrap();
            let to_ns = monotonic_ns();
            std::thread::sleep(Duration::from_nanos(LATE_NS));
            let NetEvent::Received(received) = next(&mut driver) else {
                panic!("bytes were sent");
            };
            assert_eq!(driver.bytes(&received), b"hello");
            let arrived_ns = driver.arrived_ns(&received);
            driver.release(received);
            match arrived_ns {
                // The wall clock may be slewed meanwhile, by a millisecond per second at most.
                Some(arrived_ns) => {
                    assert!(asked);
                    assert!(
                        (from_ns - LATE_NS / 100..to_ns + LATE_NS / 100).contains(&arrived_ns),
                        "{arrived_ns} is not between {from_ns} and {to_ns}"
                    );
                    break;
                }
                None if !asked => break,
                // Interrupted between two readings of the clocks, as an emulated CPU often is.
                None => assert!(monotonic_ns() < until_ns, "the stamp has no place"),
            }
        }
        drop(peer);
        assert!(matches!(next(&mut driver), NetEvent::Closed(of) if of == conn));
    }

    #[test]
    fn a_read_of_a_stamped_connection_says_when_its_bytes_came() {
        let drawn = |conn: &ConnId| is_drawn(SEED, *conn, 32);
        let other = (0..32).find(|conn| !drawn(conn));
        for conn in (0..32).filter(drawn).chain(other) {
            looks_late::<Epoll>(conn);
            looks_late::<Uring>(conn);
        }
    }
}
