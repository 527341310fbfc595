//! `CONNECT` of HTTP/1.1.
//!
//! In: a connection to the proxy and an address. Out: a tunnel, or the proxy's refusal.
//! Never: read beyond 8 KiB or into the tunnel, or read the body of a refusal.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::attempt::{Failure, FailureKind};
use domain::proxy::Credentials;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::refusal;
use crate::transport::fault::failure;

/// Bytes that a proxy may say, interim answers included.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Lines of its head.
const HEADERS_MAX: usize = 64;
const KIND: &str = "HTTP";

/// Asks for a tunnel to `address`.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    address: SocketAddr,
    credentials: Option<&Credentials>,
) -> Result<(), Failure> {
    let request = request(address, credentials);
    stream.write_all(request.as_bytes()).await.map_err(|_| refusal::ended())?;
    stream.flush().await.map_err(|_| refusal::ended())?;
    let mut said = Vec::with_capacity(1 << 10);
    let mut begin = 0;
    loop {
        while let Some(head) = read(&said[begin..]).ok_or_else(|| refusal::no_proxy(KIND))? {
            begin += head.len;
            match head.status {
                100..=199 => {}
                // No body follows, whatever the headers say.
                200..=299 if begin == said.len() => return Ok(()),
                200..=299 => {
                    let text = "the peer spoke before it was asked";
                    return Err(failure(FailureKind::Reset, text));
                }
                status => return Err(refusal::status(status, head.wants_credentials)),
            }
        }
        let room = (HEAD_BYTES_MAX - said.len()) as u64;
        if room == 0 {
            return Err(refusal::no_proxy(KIND));
        }
        match (&mut *stream).take(room).read_buf(&mut said).await {
            Ok(0) | Err(_) => return Err(refusal::ended()),
            Ok(_) => {}
        }
    }
}

fn request(address: SocketAddr, credentials: Option<&Credentials>) -> String {
    let mut text = format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n");
    if let Some(Credentials { user, password }) = credentials {
        let both = [user, &b":"[..], password].concat();
        text.push_str(&format!("proxy-authorization: Basic {}\r\n", STANDARD.encode(both)));
    }
    text.push_str("\r\n");
    text
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    wants_credentials: bool,
    len: usize,
}

/// The head at the beginning of `said`, if it is complete; `None`: this is no HTTP.
fn read(said: &[u8]) -> Option<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let len = match response.parse(said).ok()? {
        httparse::Status::Complete(len) => len,
        httparse::Status::Partial => return Some(None),
    };
    let wants_credentials = response.headers.iter().any(|header| {
        ["proxy-authenticate", "www-authenticate"]
            .iter()
            .any(|name| header.name.eq_ignore_ascii_case(name))
    });
    Some(Some(Head { status: response.code?, wants_credentials, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_names_an_address_and_who_we_are() {
        let text = request("192.0.2.1:80".parse().unwrap(), None);
        assert_eq!(text, "CONNECT 192.0.2.1:80 HTTP/1.1\r\nhost: 192.0.2.1:80\r\n\r\n");
        let known = Credentials { user: b"Aladdin".to_vec(), password: b"open sesame".to_vec() };
        let text = request("[2001:db8::1]:443".parse().unwrap(), Some(&known));
        assert_eq!(
            text,
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nhost: [2001:db8::1]:443\r\n\
             proxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
        );
    }

    #[test]
    fn heads_are_read_to_their_end_and_no_further() {
        let head =
            |status, wants_credentials, len| Some(Some(Head { status, wants_credentials, len }));
        for (said, expected) in [
            ("", Some(None)),
            ("HTTP/1.1 200", Some(None)),
            ("HTTP/1.0 200 OK\r\nvia: x\r\n", Some(None)),
            ("HTTP/1.0 200 OK\r\n\r\n", head(200, false, 19)),
            ("HTTP/1.1 200\r\ncontent-length: 9\r\n\r\nx", head(200, false, 35)),
            ("HTTP/1.1 407 x\r\nProxy-Authenticate: Basic\r\n\r\n", head(407, true, 45)),
            ("HTTP/2 200 OK\r\n\r\n", None),
            ("SSH-2.0-x\r\n", None),
            ("\x05\x00", None),
        ] {
            assert_eq!(read(said.as_bytes()), expected, "{said:?}");
        }
    }
}
