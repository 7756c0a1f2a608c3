//! Where requests go: the plan's target, parsed and resolved once.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use url::{Host, ParseError, Url};

use crate::net::address::{Address, UNIX_PATH_BYTES, resolve};
use crate::net::reach::leave_out_unanswered;
use crate::plan::{self, Family, Plan};
use crate::refusal::{PlanError, refuse};

/// More addresses than this are no list that somebody wrote.
pub const MAX_ADDRESSES: usize = 4_096;

/// What goes into `Host` for a Unix socket, which has no name of its own.
const UNIX_AUTHORITY: &str = "localhost";

/// A server that requests go to.
#[derive(Debug)]
pub struct ResolvedTarget {
    /// Whether TLS is spoken.
    pub secure: bool,
    /// Without brackets; what a certificate must be for.
    pub host: String,
    /// As it goes into the `Host` header.
    pub authority: String,
    /// At least one.
    pub addresses: Vec<Address>,
    /// Addresses of its name that were left out: nobody answered on their family.
    pub unanswered: Vec<Address>,
}

/// How names become addresses.
#[derive(Debug, Clone, Copy)]
struct Names {
    family: Option<Family>,
    connect: Duration,
}

impl Names {
    fn of(plan: &Plan) -> Self {
        Self {
            family: plan.connection.family,
            connect: Duration::from_secs_f64(plan.timeouts.connect_ms.max(0.0) / 1000.0),
        }
    }
}

impl ResolvedTarget {
    pub fn resolve(plan: &Plan) -> Result<Self, PlanError> {
        let target = &plan.target;
        if let Some(path) = target.url.strip_prefix("unix:") {
            return Self::unix(path, target);
        }
        Self::host(&target.url, &target.addresses, Names::of(plan))
    }

    /// The plan's `other_targets`, in their order.
    pub fn resolve_others(plan: &Plan) -> Result<Vec<Self>, PlanError> {
        let others = plan.other_targets.iter();
        others
            .enumerate()
            .map(|(place, other)| {
                Self::host(&other.url, &other.addresses, Names::of(plan)).map_err(|error| {
                    PlanError(format!("other_targets, entry {}: {error}", place + 1))
                })
            })
            .collect()
    }

    fn host(url: &str, listed: &[String], names: Names) -> Result<Self, PlanError> {
        let url = Authority::parse(url)?;
        let (mut addresses, mut unanswered) = (Vec::new(), Vec::new());
        if listed.is_empty() {
            addresses = look_up("target.url", &url.host, url.port, names)?;
            unanswered = leave_out_unanswered(&mut addresses, names.connect);
        }
        for entry in listed {
            let Some((host, port)) = split_port(entry) else {
                refuse! {
                    "target.addresses holds \"{entry}\", expected a host and perhaps a port, such as 127.0.0.1:8080, [::1]:8080 or name"
                }
            };
            let port = port.unwrap_or(url.port);
            let mut all = look_up("target.addresses", &host, port, names)?;
            unanswered.extend(leave_out_unanswered(&mut all, names.connect));
            for found in all {
                if !addresses.contains(&found) {
                    addresses.push(found);
                }
            }
        }
        refuse_if! {
            addresses.len() > MAX_ADDRESSES =>
                "target.addresses stands for {} addresses, expected at most {MAX_ADDRESSES}", addresses.len();
        }
        Ok(Self {
            secure: url.secure,
            host: url.host,
            authority: url.written,
            addresses,
            unanswered,
        })
    }

    fn unix(path: &str, target: &plan::Target) -> Result<Self, PlanError> {
        refuse_if! {
            !path.starts_with('/') =>
                "target.url is \"{}\", expected the whole path of a socket, such as unix:/run/server.sock; paths of requests belong into the steps", target.url;
            !target.addresses.is_empty() =>
                "target.addresses is set, but target.url is a Unix socket: expected one of them";
        }
        let Some(address) = Address::unix(path) else {
            refuse! {
                "target.url holds a path of {} bytes, expected at most {UNIX_PATH_BYTES} and no zero byte: the system takes no longer one", path.len()
            }
        };
        Ok(Self {
            secure: false,
            host: UNIX_AUTHORITY.to_owned(),
            authority: UNIX_AUTHORITY.to_owned(),
            addresses: vec![address],
            unanswered: Vec::new(),
        })
    }
}

fn look_up(key: &str, host: &str, port: u16, names: Names) -> Result<Vec<Address>, PlanError> {
    let mut found = resolve(host, port).map_err(|error| {
        let error = error.to_string();
        let error = error.rsplit_once(": ").map_or(error.as_str(), |(_, why)| why);
        PlanError(format!(
            "{key}: the host \"{host}\" cannot be resolved ({error}): correct the name, or the resolver"
        ))
    })?;
    refuse_if! { found.is_empty() => "{key}: the host \"{host}\" has no address"; }
    let nowhere = |address: &Address| matches!(address.socket(), Some(SocketAddr::V6(at)) if at.ip().is_unicast_link_local() && at.scope_id() == 0);
    refuse_if! {
        found.iter().any(nowhere) =>
            "{key}: {host} is a link-local address without a zone: name the interface that leads to it, as in fe80::1%eth0";
    }
    let Some(family) = names.family else {
        return Ok(found);
    };
    let others: Vec<String> = found.iter().map(ToString::to_string).collect();
    found.retain(|address| {
        let v4 = address.ip().is_some_and(|ip| ip.is_ipv4());
        v4 == (family == Family::Ipv4)
    });
    if found.is_empty() {
        let wanted = match family {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        };
        refuse! {
            "{key}: the host \"{host}\" has no {wanted} address, only {}: take the other family, or name another host", others.join(", ")
        }
    }
    Ok(found)
}

/// A host without brackets, and the port where there is one; `None` when it is neither.
fn split_port(text: &str) -> Option<(String, Option<u16>)> {
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Some((ip.to_string(), None));
    }
    if let Some((ip, rest)) = text.strip_prefix('[').and_then(|text| text.split_once('%')) {
        // With a zone, which a resolver knows.
        let (zone, port) = rest.split_once(']')?;
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':')?.parse().ok()?),
        };
        let known = ip.parse::<Ipv6Addr>().is_ok() && port != Some(0) && is_plain(zone);
        return known.then(|| (format!("{ip}%{zone}"), port));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) if !text.ends_with(']') => (host, Some(digits.parse().ok()?)),
        _ => (text, None),
    };
    if port == Some(0) || !is_plain(host) {
        return None;
    }
    let host = match Host::parse(host).ok()? {
        Host::Ipv6(ip) => ip.to_string(),
        // As it was written: a resolver knows what a name stands for.
        Host::Ipv4(_) | Host::Domain(_) => host.to_owned(),
    };
    Some((host, port))
}

/// Whether nothing stands in it that a URL would take for something else, or leave out.
fn is_plain(authority: &str) -> bool {
    authority
        .bytes()
        .all(|byte| byte > b' ' && !b"/@?#\\".contains(&byte))
}

/// Host and port of a URL.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    /// Whether the scheme is https.
    secure: bool,
    host: String,
    port: u16,
    /// As it goes into the `Host` header.
    written: String,
}

impl Authority {
    fn parse(url: &str) -> Result<Self, PlanError> {
        let wrong = |what: &str| {
            refuse(format!(
                "target.url is \"{url}\": {what}; expected something like http://127.0.0.1:8080 or unix:/run/server.sock"
            ))
        };
        let parsed = match Url::parse(url) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => parsed,
            Err(ParseError::EmptyHost) => return wrong("the host is missing"),
            Err(ParseError::InvalidPort) => {
                return wrong("the port is not a number from 1 to 65535");
            }
            Err(ParseError::InvalidIpv6Address) => {
                return wrong("the host is not an IPv6 address in brackets");
            }
            Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => {
                return wrong("the scheme is missing or unknown");
            }
            Err(error) => return wrong(&error.to_string()),
        };
        if parsed.path() != "/" {
            return wrong("a path belongs into the steps of the scenario");
        }
        let secure = parsed.scheme() == "https";
        let written = url.split_once("://").map_or("", |(_, rest)| rest);
        let written = written.strip_suffix('/').unwrap_or(written);
        if !is_plain(written) {
            return wrong("only host and port are expected after the scheme");
        }
        let (Some(host), Some(port)) = (parsed.host(), parsed.port_or_known_default()) else {
            return wrong("the host is missing");
        };
        if port == 0 {
            return wrong("the port is not a number from 1 to 65535");
        }
        let port_is_written = parsed.port().is_some() || written.ends_with(&format!(":{port}"));
        let written = match (written.is_ascii(), port_is_written) {
            (true, _) => written.to_owned(),
            // Headers name hosts in the form of the name system.
            (false, true) => format!("{host}:{port}"),
            (false, false) => host.to_string(),
        };
        let host = match host {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        };
        Ok(Self {
            secure,
            host,
            port,
            written,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn urls_are_taken_apart_or_refused_with_a_reason() {
        let parts =
            |url: &str| Authority::parse(url).map(|parts| (parts.host, parts.port, parts.written));
        assert_eq!(
            parts("http://a.b:81"),
            Ok(("a.b".into(), 81, "a.b:81".into()))
        );
        assert_eq!(parts("http://a/"), Ok(("a".into(), 80, "a".into())));
        assert_eq!(parts("https://a"), Ok(("a".into(), 443, "a".into())));
        let umlaut = "xn--bcher-kva.test";
        assert_eq!(
            parts("http://b\u{fc}cher.test:80"),
            Ok((umlaut.into(), 80, format!("{umlaut}:80")))
        );
        assert_eq!(
            parts("http://B\u{fc}cher.test"),
            Ok((umlaut.into(), 80, umlaut.into()))
        );
        assert_eq!(
            parts("http://[::1]:81"),
            Ok(("::1".into(), 81, "[::1]:81".into()))
        );
        for bad in [
            "a:80",
            "https://a/b",
            "http://",
            "http://a:0",
            "http://a:x",
            "http://a/b",
            "http://[::1",
            "http://[::1]81",
            "http://u@a",
            "ftp://a",
        ] {
            let sentence = parts(bad).unwrap_err().0;
            assert!(
                sentence.contains(bad) && sentence.contains("expected"),
                "{sentence}"
            );
        }
    }

    fn addresses(target: Value) -> Result<Vec<String>, String> {
        resolved(target, json!({}))
    }

    fn resolved(target: Value, connection: Value) -> Result<Vec<String>, String> {
        let plan = json!({"version": 1, "target": target, "connection": connection,
            "load": {"model": "closed", "users": 1}, "scenarios": [{"steps": [{"path": "/"}]}],
            "stop": {"total_requests": 1}});
        let plan: Plan = serde_json::from_value(plan).unwrap();
        ResolvedTarget::resolve(&plan)
            .map(|target| target.addresses.iter().map(ToString::to_string).collect())
            .map_err(|refusal| refusal.0)
    }

    #[test]
    fn a_list_of_addresses_stands_in_for_the_host_of_the_url() {
        let listed = addresses(json!({"url": "http://no.such.host.invalid:81",
            "addresses": ["127.0.0.1", "127.0.0.2:82", "[::1]:83", "::1", "127.0.0.1:81"]}));
        let expected = ["127.0.0.1:81", "127.0.0.2:82", "[::1]:83", "[::1]:81"];
        assert_eq!(listed.unwrap(), expected);
        for bad in ["", ":80", "a:b", "a b", "http://a", "[::1", "a:0", "a/b"] {
            let sentence =
                addresses(json!({"url": "http://127.0.0.1:1", "addresses": [bad]})).unwrap_err();
            assert!(sentence.contains("target.addresses holds"), "{sentence}");
        }
    }

    #[test]
    fn only_addresses_of_the_family_that_was_asked_for_stay() {
        let of = |family: &str, listed: &[&str]| {
            let target = json!({"url": "http://h.invalid:81", "addresses": listed});
            resolved(target, json!({"family": family}))
        };
        assert_eq!(of("ipv4", &["127.0.0.1"]).unwrap(), ["127.0.0.1:81"]);
        assert_eq!(of("ipv6", &["::1"]).unwrap(), ["[::1]:81"]);
        for (family, listed, part) in [
            ("ipv6", "127.0.0.1", "no IPv6 address, only 127.0.0.1:81"),
            ("ipv4", "::1", "no IPv4 address, only [::1]:81"),
            ("ipv6", "fe80::1", "without a zone"),
        ] {
            let sentence = of(family, &[listed]).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn a_unix_socket_is_one_address_by_its_whole_path() {
        let unix = |url: &str| addresses(json!({"url": url}));
        assert_eq!(unix("unix:/run/a.sock").unwrap(), ["unix:/run/a.sock"]);
        for (url, part) in [
            ("unix:a.sock", "the whole path"),
            (&format!("unix:/{}", "a".repeat(200)), "201 bytes"),
        ] {
            let sentence = unix(url).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
        let both = addresses(json!({"url": "unix:/a", "addresses": ["127.0.0.1"]})).unwrap_err();
        assert!(both.contains("one of them"), "{both}");
    }
}
