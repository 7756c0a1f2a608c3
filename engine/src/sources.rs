//! Source addresses: a list or a range of this host's, in the target's address family.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::net::address::Address;
use crate::net::sys::check_source;
use crate::plan::Sources;
use crate::refusal::{PlanError, refuse};

/// More addresses than this do not help: they are for a billion connections to one target.
const MAX_SOURCES: usize = 65_536;

/// The addresses in order, or why they cannot be used.
pub fn resolve(sources: &Sources, targets: &[Address]) -> Result<Vec<Address>, PlanError> {
    let found = match sources {
        Sources::List(list) => list
            .iter()
            .map(|text| parse(text))
            .collect::<Result<Vec<_>, _>>()?,
        Sources::Range(text) => range(text)?,
    };
    refuse_if! {
        found.len() > MAX_SOURCES =>
            "target.source_addresses holds {} addresses, expected at most {MAX_SOURCES}", found.len();
        !found.is_empty() && targets.iter().any(Address::is_unix) =>
            "target.source_addresses is set, but target.url is a Unix socket, which is connected to from no address: leave it out";
    }
    let same_family = |ip: &IpAddr| {
        let mut families = targets.iter().filter_map(Address::ip);
        families.all(|target| target.is_ipv4() == ip.is_ipv4())
    };
    if let Some(other) = found.iter().find(|ip| !same_family(ip)) {
        refuse! {
            "target.source_addresses holds {other}, but the target has an address of the other family: give sources of the target's family, and an IP address in target.url"
        }
    }
    let check = |ip: IpAddr| {
        let address = Address::new(SocketAddr::new(ip, 0));
        match check_source(&address) {
            Ok(()) => Ok(address),
            Err(error) => refuse(format!(
                "target.source_addresses holds {ip}, from which this host cannot connect ({error}): give addresses of this host; all of 127.0.0.0/8 are"
            )),
        }
    };
    found.into_iter().map(check).collect()
}

fn parse(text: &str) -> Result<IpAddr, PlanError> {
    text.trim().parse().map_err(|_| {
        PlanError(format!(
            "target.source_addresses holds {text:?}, expected an IP address such as 127.0.1.1"
        ))
    })
}

fn range(text: &str) -> Result<Vec<IpAddr>, PlanError> {
    let Some((first, last)) = text.split_once('-') else {
        return Ok(vec![parse(text)?]);
    };
    let (first, last) = (parse(first)?, parse(last)?);
    let (from, to) = match (first, last) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (u128::from(from.to_bits()), u128::from(to.to_bits()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => (from.to_bits(), to.to_bits()),
        _ => {
            refuse! { "target.source_addresses is {text:?}, expected both ends to be of one family" }
        }
    };
    refuse_if! {
        from > to || to - from >= MAX_SOURCES as u128 =>
            "target.source_addresses is {text:?}, expected the lower address first and at most {MAX_SOURCES} addresses";
    }
    let ip = |bits: u128| match first {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    };
    Ok((from..=to).map(ip).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sources: Sources) -> Result<Vec<String>, String> {
        let target = Address::new("127.0.0.1:80".parse().unwrap());
        resolve(&sources, &[target])
            .map(|all| {
                all.iter()
                    .filter_map(|one| one.ip())
                    .map(|ip| ip.to_string())
                    .collect()
            })
            .map_err(|refusal| refusal.0)
    }

    #[test]
    fn a_list_and_a_range_name_addresses_of_this_host() {
        let range = shown(Sources::Range("127.0.1.254-127.0.2.1".to_owned())).unwrap();
        assert_eq!(
            range,
            ["127.0.1.254", "127.0.1.255", "127.0.2.0", "127.0.2.1"]
        );
        let list = vec!["127.0.0.9".to_owned(), "127.3.0.1".to_owned()];
        assert_eq!(shown(Sources::List(list.clone())).unwrap(), list);
        assert_eq!(shown(Sources::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_a_source_is_refused_with_a_sentence() {
        for (text, reason) in [
            ("127.0.0.9-127.0.0.1", "lower address first"),
            ("127.0.0.1-127.9.0.1", "at most"),
            ("127.0.0.1-::1", "one family"),
            ("::1", "other family"),
            ("192.0.2.1", "addresses of this host"),
            ("localhost", "expected an IP address"),
        ] {
            let sentence = shown(Sources::Range(text.to_owned())).unwrap_err();
            assert!(sentence.contains(reason), "{sentence}");
        }
    }
}
