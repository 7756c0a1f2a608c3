//! The servers of a load: where their connections go, how TLS is spoken with them, and which of them
//! share cookies. Opens no connection.

use std::ops::Range;
use std::sync::Arc;

use super::{PlanError, refuse};
use crate::net::address::Address;
use crate::plan::{self, HttpVersion, Plan};
use crate::scenario::compile::Server;
use crate::scenario::redirect::TargetOrigin;
use crate::target::{MAX_ADDRESSES, ResolvedTarget};
use crate::tls::config::ClientTls;

/// One server.
#[derive(Debug)]
pub struct ServerJob {
    /// Its addresses, among those of all servers.
    pub addresses: Range<usize>,
    /// What a redirect may name.
    pub origin: TargetOrigin,
    /// Without brackets.
    host: String,
}

impl ServerJob {
    /// What requests are written with.
    pub fn written(&self) -> Server<'_> {
        Server {
            origin: &self.origin,
            host: &self.host,
        }
    }
}

/// How TLS is spoken, where any of the servers asks for it.
pub fn tls(
    plan: &Plan,
    target: &ResolvedTarget,
    others: &[ResolvedTarget],
) -> Result<Option<Arc<ClientTls>>, PlanError> {
    let all = || std::iter::once(target).chain(others);
    if !all().any(|server| server.secure) {
        return match plan.target.tls {
            None => Ok(None),
            Some(_) => refuse(format!(
                "target.tls is set, but target.url is \"{}\", expected it to begin with https://",
                plan.target.url
            )),
        };
    }
    let usual = plan::Tls::default();
    let mut asked = plan.target.tls.clone().unwrap_or_default();
    if plan.http_version == HttpVersion::V2 && asked.alpn == usual.alpn {
        // What any client of HTTP/2 offers; a server that then chooses the other is distinguished.
        asked.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    }
    let hosts = all().flat_map(|server| {
        let host = server.secure.then_some(server.host.as_str());
        server.addresses.iter().map(move |_| host)
    });
    Ok(Some(Arc::new(ClientTls::new(&asked, hosts)?)))
}

/// The servers in their order, and the addresses of all.
pub fn together(
    target: ResolvedTarget,
    others: Vec<ResolvedTarget>,
) -> Result<(Vec<ServerJob>, Arc<[Address]>), PlanError> {
    let mut addresses = Vec::new();
    let mut servers = Vec::new();
    for server in std::iter::once(target).chain(others) {
        let from = addresses.len();
        addresses.extend(server.addresses);
        servers.push(ServerJob {
            addresses: from..addresses.len(),
            origin: TargetOrigin {
                secure: server.secure,
                authority: server.authority,
            },
            host: server.host,
        });
    }
    refuse_if! {
        addresses.len() > MAX_ADDRESSES =>
            "target and other_targets stand for {} addresses, expected at most {MAX_ADDRESSES}", addresses.len();
    }
    Ok((servers, Arc::from(addresses)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(others: serde_json::Value) -> (Vec<ServerJob>, Option<Arc<ClientTls>>) {
        let plan = json!({"version": 1, "target": {"url": "http://127.0.0.1:81"}, "other_targets": others,
            "load": {"model": "closed", "users": 1}, "scenarios": [{"steps": [{"path": "/"}]}],
            "stop": {"total_requests": 1}});
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let target = ResolvedTarget::resolve(&plan).unwrap();
        let others = ResolvedTarget::resolve_others(&plan).unwrap();
        let tls = tls(&plan, &target, &others).unwrap();
        (together(target, others).unwrap().0, tls)
    }

    #[test]
    fn each_server_has_its_addresses_and_host() {
        let (servers, tls) = job(json!([
            {"url": "http://127.0.0.1:82", "addresses": ["127.0.0.2", "127.0.0.3"]},
            {"url": "https://127.0.0.4:83"},
        ]));
        let ranges: Vec<_> = servers.iter().map(|one| one.addresses.clone()).collect();
        assert_eq!(ranges, [0..1, 1..3, 3..4]);
        let hosts: Vec<_> = servers.iter().map(|one| one.host.as_str()).collect();
        assert_eq!(hosts, ["127.0.0.1", "127.0.0.1", "127.0.0.4"]);
        let tls = tls.unwrap();
        let secure: Vec<_> = (0..4).map(|place| tls.name(place).is_some()).collect();
        assert_eq!(secure, [false, false, false, true]);
    }
}
