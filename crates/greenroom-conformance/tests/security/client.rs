//! A client of a node's HTTP door.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What a door has answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks for a page in plain, with these header lines.
pub(crate) async fn get(address: &str, path: &str, headers: &[&str]) -> Answer {
    exchange(TcpStream::connect(address).await.unwrap(), &request("GET", path, headers, "")).await
}

/// Calls a method in plain.
pub(crate) async fn post(address: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    ask("POST", address, path, headers, body).await
}

/// Asks in plain by any of HTTP's methods.
pub(crate) async fn ask(method: &str, address: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    exchange(TcpStream::connect(address).await.unwrap(), &request(method, path, headers, body)).await
}

/// Asks for a page inside of TLS, trusting `folder`'s authority, with the client's certificate in it if it has one.
pub(crate) async fn get_secure(address: &str, folder: &Path, path: &str, headers: &[&str]) -> std::io::Result<Answer> {
    Ok(exchange(connect(address, folder).await?, &request("GET", path, headers, "")).await)
}

/// Calls a method inside of TLS.
pub(crate) async fn post_secure(address: &str, folder: &Path, path: &str, headers: &[&str], body: &str) -> Answer {
    exchange(connect(address, folder).await.unwrap(), &request("POST", path, headers, body)).await
}

/// Opens TLS, trusting `folder`'s authority.
async fn connect(address: &str, folder: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    let read = |file: &str| std::fs::read(folder.join(file));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read("ca.pem").unwrap()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match (read("client.pem"), read("client.key")) {
        (Ok(cert), Ok(key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&cert).unwrap()],
                PrivateKeyDer::from_pem_slice(&key).unwrap(),
            )
            .unwrap(),
        _ => builder.with_no_client_auth(),
    };
    let stream = TcpStream::connect(address).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let len = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n{body}"
    )
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // A close without farewell is the end all the same.
    let _ = stream.read_to_end(&mut said).await;
    let said = String::from_utf8(said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}
