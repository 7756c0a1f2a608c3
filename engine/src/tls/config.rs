//! Turns the plan's `target.tls` into a `rustls` configuration, or refuses it in one sentence.
//! Reads certificate files, once, before the load starts.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme, SupportedProtocolVersion,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::PROTOCOLS;
use super::store::SessionStore;
use crate::plan::{Tls, TlsSessions, TlsVersion};
use crate::refusal::{PlanError, refuse};

/// Whose certificates are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    System,
    File,
    /// Any certificate is taken.
    Anybody,
}

/// What the handshakes of the run ask for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TlsReady {
    /// Any certificate is taken: who answers is not proved.
    pub insecure: bool,
    /// Whose certificates are trusted: `system`, `file` (target.tls.ca) or `any`.
    pub trust: String,
    /// The name in the certificate, and in the handshake where it is no IP address.
    pub server_name: String,
    pub resumption: bool,
    /// Whose sessions are resumed.
    pub sessions: TlsSessions,
    pub alpn: Vec<String>,
    pub client_certificate: bool,
}

/// A checked configuration, shared by all threads.
#[derive(Debug)]
pub struct ClientTls {
    config: ClientConfig,
    sessions: TlsSessions,
    /// By address of the load; `None`: plain HTTP is spoken there.
    names: Vec<Option<ServerName<'static>>>,
    ready: TlsReady,
}

impl ClientTls {
    /// `hosts`: by address of the load, the host of its server's URL without brackets, or `None` where
    /// plain HTTP is spoken.
    pub fn new<'a>(
        plan: &Tls,
        hosts: impl Iterator<Item = Option<&'a str>>,
    ) -> Result<Self, PlanError> {
        let names = hosts.map(|host| host.map(|host| server_name(plan, host)).transpose());
        let names: Vec<_> = names.collect::<Result<_, _>>()?;
        let (trust, roots, listed) = trusted(plan)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions(plan)?)
            .map_err(|error| PlanError(format!("target.tls: TLS cannot be set up: {error}")))?;
        let builder = match trust {
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Verifier::new(None))),
            Trust::System => builder.with_root_certificates(roots),
            Trust::File => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Verifier::new(Some(Pinned::new(
                    roots, listed,
                )?)))),
        };
        let mut config = match (&plan.client_cert, &plan.client_key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(
                    certificates("target.tls.client_cert", cert)?,
                    private_key(key)?,
                )
                .map_err(|error| {
                    PlanError(format!(
                        "target.tls.client_cert and client_key do not fit: {error}"
                    ))
                })?,
            (Some(_), None) => {
                refuse! { "target.tls.client_cert is given without client_key, expected both" }
            }
            (None, Some(_)) => {
                refuse! { "target.tls.client_key is given without client_cert, expected both" }
            }
        };
        config.alpn_protocols = alpn(plan)?;
        config.resumption = Resumption::disabled();
        Ok(Self {
            config,
            sessions: plan.sessions,
            ready: TlsReady {
                insecure: trust == Trust::Anybody,
                trust: match trust {
                    Trust::System => "system",
                    Trust::File => "file",
                    Trust::Anybody => "any",
                }
                .to_owned(),
                server_name: all_names(&names),
                resumption: plan.sessions != TlsSessions::None,
                sessions: plan.sessions,
                alpn: plan.alpn.clone(),
                client_certificate: plan.client_cert.is_some(),
            },
            names,
        })
    }

    /// The name of the server at this address of the load; `None`: plain HTTP is spoken there.
    #[inline]
    pub fn name(&self, address: usize) -> Option<&ServerName<'static>> {
        self.names.get(address)?.as_ref()
    }

    /// As the report shows it.
    pub fn ready(&self) -> TlsReady {
        self.ready.clone()
    }

    /// The configuration of one thread, and its memory of sessions where there is one.
    pub fn for_thread(&self) -> (Arc<ClientConfig>, Option<Arc<SessionStore>>) {
        let mut config = self.config.clone();
        let shared = match self.sessions {
            TlsSessions::None => return (Arc::new(config), None),
            TlsSessions::Shared => true,
            TlsSessions::User => false,
        };
        let store = Arc::new(SessionStore::new(shared));
        config.resumption = Resumption::store(Arc::clone(&store) as Arc<_>);
        (Arc::new(config), Some(store))
    }
}

/// Each name once.
fn all_names(names: &[Option<ServerName<'static>>]) -> String {
    let mut found: Vec<_> = names.iter().flatten().map(ServerName::to_str).collect();
    found.dedup();
    found.join(", ")
}

fn server_name(plan: &Tls, host: &str) -> Result<ServerName<'static>, PlanError> {
    let (key, text) = match &plan.sni {
        Some(name) => ("target.tls.sni", name.as_str()),
        None => ("target.url: the host", host),
    };
    ServerName::try_from(text.to_owned()).map_err(|_| {
        PlanError(format!(
            "{key} is \"{text}\", expected a host name or an IP address, as a certificate holds it"
        ))
    })
}

fn versions(plan: &Tls) -> Result<Vec<&'static SupportedProtocolVersion>, PlanError> {
    refuse_if! {
        plan.min_version > plan.max_version =>
            "target.tls.min_version is 1.3 and max_version is 1.2, expected min_version <= max_version";
    }
    let both = [
        (TlsVersion::V1_2, &rustls::version::TLS12),
        (TlsVersion::V1_3, &rustls::version::TLS13),
    ];
    Ok(both
        .into_iter()
        .filter(|(version, _)| (plan.min_version..=plan.max_version).contains(version))
        .map(|(_, known)| known)
        .collect())
}

/// Also the certificates of the file, as they stand there.
fn trusted(plan: &Tls) -> Result<(Trust, RootCertStore, Vec<CertificateDer<'static>>), PlanError> {
    let mut roots = RootCertStore::empty();
    match (&plan.ca, plan.insecure) {
        (Some(_), true) => refuse(
            "target.tls sets both ca and insecure, expected one: with insecure any certificate is taken",
        ),
        (None, true) => Ok((Trust::Anybody, roots, Vec::new())),
        (Some(file), false) => {
            let listed = certificates("target.tls.ca", file)?;
            for certificate in &listed {
                roots.add(certificate.clone()).map_err(|error| {
                    PlanError(format!(
                        "target.tls.ca: {} holds a certificate that cannot be trusted: {error}",
                        file.display()
                    ))
                })?;
            }
            Ok((Trust::File, roots, listed))
        }
        (None, false) => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            refuse_if! {
                roots.is_empty() =>
                    "target.tls names no ca and this system trusts no certificates (package ca-certificates); give ca, a PEM file, or set insecure";
            }
            Ok((Trust::System, roots, Vec::new()))
        }
    }
}

fn certificates(key: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, PlanError> {
    let chain = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(key, file, &error))?;
    refuse_if! {
        chain.is_empty() => "{key}: {} holds no certificate, expected a PEM file", file.display();
    }
    Ok(chain)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, PlanError> {
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| unreadable("target.tls.client_key", file, &error))
}

fn unreadable(key: &str, file: &Path, error: &dyn std::fmt::Display) -> PlanError {
    PlanError(format!(
        "{key}: {} cannot be read as PEM: {error}",
        file.display()
    ))
}

fn alpn(plan: &Tls) -> Result<Vec<Vec<u8>>, PlanError> {
    let known = |name: &&String| !PROTOCOLS.contains(&name.as_str());
    if let Some(other) = plan.alpn.iter().find(known) {
        refuse! { "target.tls.alpn offers \"{other}\", expected http/1.1, http/1.0, h2, or an empty list" }
    }
    Ok(plan
        .alpn
        .iter()
        .map(|name| name.clone().into_bytes())
        .collect())
}

/// Trusts what the certificates of a file have signed, and those certificates themselves: `openssl req
/// -x509` makes one that signs others, which no server is to show, and servers show it.
#[derive(Debug)]
struct Pinned {
    signed: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl Pinned {
    fn new(roots: RootCertStore, listed: Vec<CertificateDer<'static>>) -> Result<Self, PlanError> {
        let provider = Arc::new(ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| PlanError(format!("target.tls.ca cannot be used: {error}")))?;
        Ok(Self { signed, listed })
    }
}

/// Whether all that is wrong with a certificate is that it is one to sign others with. Its dates are
/// checked before that.
fn signs_others(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(error))) = error else {
        return false;
    };
    error.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// Takes a server whose certificate is trusted, or any, but none that does not hold the certificate's key.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate is taken.
    pinned: Option<Pinned>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(pinned: Option<Pinned>) -> Self {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        Self { pinned, algorithms }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Pinned { signed, listed }) = &self.pinned else {
            return Ok(ServerCertVerified::assertion());
        };
        match signed.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            Err(error) if signs_others(&error) && listed.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
