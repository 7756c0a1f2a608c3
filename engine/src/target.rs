//! Where requests go: the plan's target, parsed and resolved once. Opens no connection.

use std::net::Ipv6Addr;

use url::{Host, ParseError, Url};

use crate::net::address::{Address, UNIX_PATH_BYTES, resolve};
use crate::plan;
use crate::refusal::{PlanError, refuse};

/// More addresses than this are no list that somebody wrote.
pub const MOST_ADDRESSES: usize = 4_096;

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
}

impl ResolvedTarget {
    pub fn resolve(target: &plan::Target) -> Result<Self, PlanError> {
        if let Some(path) = target.url.strip_prefix("unix:") {
            return Self::unix(path, target);
        }
        Self::host(&target.url, &target.addresses)
    }

    /// The plan's `other_targets`, in their order.
    pub fn resolve_others(plan: &plan::Plan) -> Result<Vec<Self>, PlanError> {
        let others = plan.other_targets.iter();
        others
            .enumerate()
            .map(|(place, other)| {
                Self::host(&other.url, &other.addresses).map_err(|error| {
                    PlanError(format!("other_targets, entry {}: {error}", place + 1))
                })
            })
            .collect()
    }

    fn host(url: &str, listed: &[String]) -> Result<Self, PlanError> {
        let url = Authority::parse(url)?;
        let mut addresses = Vec::new();
        if listed.is_empty() {
            addresses = look_up("target.url", &url.host, url.port)?;
        }
        for entry in listed {
            let Some((host, port)) = split_port(entry) else {
                return refuse(format!(
                    "target.addresses holds \"{entry}\", expected a host and perhaps a port, such as 127.0.0.1:8080, [::1]:8080 or name"
                ));
            };
            for found in look_up("target.addresses", &host, port.unwrap_or(url.port))? {
                let known = addresses
                    .iter()
                    .any(|known: &Address| known.to_string() == found.to_string());
                if !known {
                    addresses.push(found);
                }
            }
        }
        if addresses.len() > MOST_ADDRESSES {
            return refuse(format!(
                "target.addresses stands for {} addresses, expected at most {MOST_ADDRESSES}",
                addresses.len()
            ));
        }
        Ok(Self {
            secure: url.secure,
            host: url.host,
            authority: url.written,
            addresses,
        })
    }

    fn unix(path: &str, target: &plan::Target) -> Result<Self, PlanError> {
        if !path.starts_with('/') {
            return refuse(format!(
                "target.url is \"{}\", expected the whole path of a socket, such as unix:/run/server.sock; paths of requests belong into the steps",
                target.url
            ));
        }
        if !target.addresses.is_empty() {
            return refuse(
                "target.addresses is set, but target.url is a Unix socket: expected one of them",
            );
        }
        let Some(address) = Address::unix(path) else {
            return refuse(format!(
                "target.url holds a path of {} bytes, expected at most {UNIX_PATH_BYTES} and no zero byte: the system takes no longer one",
                path.len()
            ));
        };
        Ok(Self {
            secure: false,
            host: UNIX_AUTHORITY.to_owned(),
            authority: UNIX_AUTHORITY.to_owned(),
            addresses: vec![address],
        })
    }
}

fn look_up(key: &str, host: &str, port: u16) -> Result<Vec<Address>, PlanError> {
    let found = resolve(host, port).map_err(|error| {
        PlanError(format!(
            "{key}: the host \"{host}\" cannot be resolved: {error}"
        ))
    })?;
    if found.is_empty() {
        return refuse(format!("{key}: the host \"{host}\" has no address"));
    }
    Ok(found)
}

/// A host without brackets, and the port where there is one; `None` when it is neither.
fn split_port(text: &str) -> Option<(String, Option<u16>)> {
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Some((ip.to_string(), None));
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
        let host = match host {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        };
        Ok(Self {
            secure,
            host,
            port,
            written: written.to_owned(),
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
        let target: plan::Target = serde_json::from_value(target).unwrap();
        ResolvedTarget::resolve(&target)
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
