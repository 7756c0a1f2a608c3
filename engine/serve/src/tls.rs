//! The TLS of the server, by `rustls`, from its options.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;

/// Loads certificate chain and key (PEM); the error is one sentence. `http2`: ALPN offers it, before
/// HTTP/1.1.
pub fn load(
    cert: &Path,
    key: &Path,
    resumption: bool,
    http2: bool,
) -> Result<Arc<ServerConfig>, String> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("--cert {}: cannot be read as PEM: {error}", cert.display()))?;
    if chain.is_empty() {
        return Err(format!(
            "--cert {}: no certificate is in it: give a PEM file",
            cert.display()
        ));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("--key {}: cannot be read as PEM: {error}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| format!("--cert and --key do not fit: {error}"))?;
    let offered: &[&[u8]] = match http2 {
        true => &[b"h2", b"http/1.1"],
        false => &[b"http/1.1"],
    };
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    if resumption {
        // Tickets that the client keeps: they cost the server no memory, however many clients there
        // are.
        config.ticketer = ring::Ticketer::new()
            .map_err(|error| format!("TLS tickets cannot be set up: {error}"))?;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}
