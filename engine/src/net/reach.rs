//! Which families of a name's addresses anybody answers on, tried once before a load. A server often
//! listens on one of two, and a client that alternates between them would be half refused.

use std::net::TcpStream;
use std::time::Duration;

use super::address::Address;

/// So many addresses of a family are tried.
const MAX_TRIED: usize = 16;
/// An attempt is given up after this time, or that of the plan's connections.
const LONGEST: Duration = Duration::from_secs(1);

/// Takes out the addresses of a family on which nobody answers, where somebody does on the other.
pub fn leave_out_unanswered(addresses: &mut Vec<Address>, connect: Duration) -> Vec<Address> {
    let is_v4 = |address: &Address| address.ip().is_some_and(|ip| ip.is_ipv4());
    let (v4, v6): (Vec<Address>, Vec<Address>) = addresses.iter().cloned().partition(is_v4);
    if v4.is_empty() || v6.is_empty() {
        return Vec::new();
    }
    let longest = connect.clamp(Duration::from_millis(1), LONGEST);
    let (v4_answers, v6_answers) = std::thread::scope(|scope| {
        let v6 = scope.spawn(|| anybody_answers(&v6, longest));
        (anybody_answers(&v4, longest), v6.join().unwrap_or(true))
    });
    match (v4_answers, v6_answers) {
        (true, false) => {
            addresses.retain(is_v4);
            v6
        }
        (false, true) => {
            addresses.retain(|address| !is_v4(address));
            v4
        }
        _ => Vec::new(),
    }
}

/// All are tried at the same time.
fn anybody_answers(addresses: &[Address], longest: Duration) -> bool {
    let sockets = addresses.iter().filter_map(Address::socket);
    std::thread::scope(|scope| {
        let tries: Vec<_> = sockets
            .take(MAX_TRIED)
            .map(|socket| scope.spawn(move || TcpStream::connect_timeout(&socket, longest).is_ok()))
            .collect();
        // The scope waits for the others.
        tries.into_iter().any(|one| one.join().unwrap_or(false))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Port of both loopback addresses, of which the listed ones listen.
    fn left(listen: &[&str]) -> Option<(Vec<String>, usize)> {
        let first = TcpListener::bind((*listen.first().unwrap_or(&"127.0.0.1"), 0)).ok()?;
        let port = first.local_addr().unwrap().port();
        let others: Vec<_> = listen.iter().skip(1).collect();
        let others: Result<Vec<_>, _> = others
            .into_iter()
            .map(|host| TcpListener::bind((*host, port)))
            .collect();
        let _others = others.ok()?;
        let mut addresses = ["127.0.0.1", "::1"]
            .map(|ip| Address::new((ip.parse::<std::net::IpAddr>().unwrap(), port).into()))
            .to_vec();
        if listen.is_empty() {
            drop(first);
        }
        let out = leave_out_unanswered(&mut addresses, Duration::from_secs(5));
        let ips = addresses.iter().filter_map(Address::ip);
        Some((ips.map(|ip| ip.to_string()).collect(), out.len()))
    }

    #[test]
    fn a_family_without_an_answer_is_left_out_where_the_other_has_one() {
        let found = |listen: &[&str]| left(listen).map(|(left, out)| (left.join(" "), out));
        let expect = |listen: &[&str], left: &str, out: usize| match found(listen) {
            Some(found) => assert_eq!(found, (left.to_owned(), out)),
            None => println!("not tested here: {listen:?} cannot be listened at"),
        };
        expect(&["127.0.0.1"], "127.0.0.1", 1);
        expect(&["::1"], "::1", 1);
        expect(&["127.0.0.1", "::1"], "127.0.0.1 ::1", 0);
        expect(&[], "127.0.0.1 ::1", 0);
    }
}
