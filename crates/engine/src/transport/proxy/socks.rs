//! SOCKS5, RFC 1928, with user and password, RFC 1929.
//!
//! In: a connection to the proxy and an address. Out: the same, leading there, or its refusal.
//! Never: say a name in place of an address, or read into what follows the reply.

use std::net::{IpAddr, SocketAddr};

use domain::attempt::Failure;
use domain::proxy::Credentials;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::refusal;

const VERSION: u8 = 5;
const AUTH_VERSION: u8 = 1;
const OPEN: u8 = 0;
const BY_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const KIND: &str = "SOCKS5";

/// Asks for a way to `address`.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    address: SocketAddr,
    credentials: Option<&Credentials>,
) -> Result<(), Failure> {
    let greeting: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, OPEN, BY_PASSWORD],
        None => &[VERSION, 1, OPEN],
    };
    say(stream, greeting).await?;
    match (hear(stream).await?, credentials) {
        ([VERSION, OPEN], _) => {}
        ([VERSION, BY_PASSWORD], Some(known)) => prove(stream, known).await?,
        ([VERSION, _], Some(_)) => {
            return Err(refusal::ours("the proxy takes no user name and password"));
        }
        ([VERSION, _], None) => return Err(refusal::ours("the proxy asks for credentials")),
        _ => return Err(refusal::no_proxy(KIND)),
    }
    say(stream, &request(address)).await?;
    let [version, code, _, kind] = hear(stream).await?;
    match (version, code) {
        (VERSION, 0) => {}
        (VERSION, code) => return Err(refusal::reply(code)),
        _ => return Err(refusal::no_proxy(KIND)),
    }
    // Where it connects from, which nobody asks for: a host and a port.
    let rest = match kind {
        IPV4 => 4 + 2,
        IPV6 => 16 + 2,
        NAME => usize::from(hear::<1, _>(stream).await?[0]) + 2,
        _ => return Err(refusal::no_proxy(KIND)),
    };
    let mut bound = [0; u8::MAX as usize + 2];
    stream.read_exact(&mut bound[..rest]).await.map_err(|_| refusal::ended())?;
    Ok(())
}

async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    known: &Credentials,
) -> Result<(), Failure> {
    say(stream, &proof(known)).await?;
    match hear(stream).await? {
        [_, 0] => Ok(()),
        [_, _] => Err(refusal::ours("the proxy does not take our credentials")),
    }
}

fn proof(known: &Credentials) -> Vec<u8> {
    let mut bytes = vec![AUTH_VERSION];
    for text in [&known.user, &known.password] {
        // Settings hold no longer ones.
        let text = &text[..text.len().min(u8::MAX.into())];
        bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(text);
    }
    bytes
}

fn request(address: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![VERSION, CONNECT, 0];
    match address.ip() {
        IpAddr::V4(four) => {
            bytes.push(IPV4);
            bytes.extend(four.octets());
        }
        IpAddr::V6(six) => {
            bytes.push(IPV6);
            bytes.extend(six.octets());
        }
    }
    bytes.extend(address.port().to_be_bytes());
    bytes
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), Failure> {
    stream.write_all(bytes).await.map_err(|_| refusal::ended())?;
    stream.flush().await.map_err(|_| refusal::ended())
}

async fn hear<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map_err(|_| refusal::ended())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_the_rfcs_write() {
        let four = request("192.0.2.1:443".parse().unwrap());
        assert_eq!(four, [5, 1, 0, 1, 192, 0, 2, 1, 1, 187]);
        let six = request("[2001:db8::1]:80".parse().unwrap());
        assert_eq!(six[..8], [5, 1, 0, 4, 0x20, 1, 0xd, 0xb8]);
        assert_eq!((six.len(), &six[20..]), (22, &[0, 80][..]));
        let known = Credentials { user: b"me".to_vec(), password: b"it!".to_vec() };
        assert_eq!(proof(&known), *b"\x01\x02me\x03it!");
    }
}
