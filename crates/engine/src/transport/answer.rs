//! Reads an answer whose final status and headers are in: a bounded body and the few headers that
//! matter.
//!
//! In: the head, the connection the body comes from, the deadline. Out: an `Answer`; the status
//! stands whatever becomes of the body.
//! Never: decompress, follow a redirect, keep more than the bound, or reuse an unread connection.

use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use domain::attempt::{Answer, Cut};
use domain::target::Target;
use http::header::{HeaderMap, LOCATION, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use resilience::{Clock, RetryAfter, retry_after};
use tokio::time::Sleep;
use url::Url;

use super::link::Link;

/// A longer origin is of no use to anyone.
const ORIGIN_BYTES_MAX: usize = 300;

/// How much of a body is read, and how much of that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) read_max: usize,
    pub(super) keep_max: usize,
}

/// What the headers say.
pub(super) struct Head {
    status: StatusCode,
    retry_after: RetryAfter,
    redirect_origin: Option<String>,
}

impl Head {
    /// Reads it from an answer of `target`.
    pub(super) fn of(response: &Response<Incoming>, target: &Target, clock: &dyn Clock) -> Self {
        let status = response.status();
        let headers = response.headers();
        Self {
            status,
            retry_after: hint(headers, clock),
            redirect_origin: status
                .is_redirection()
                .then(|| redirect_origin(headers, target))
                .flatten(),
        }
    }

    /// Completes it with the body.
    pub(super) fn with(self, (body, cut): (Bytes, Option<Cut>)) -> Answer {
        Answer {
            status: self.status.as_u16(),
            retry_after: self.retry_after,
            body,
            cut,
            redirect_origin: self.redirect_origin,
        }
    }
}

fn hint(headers: &HeaderMap, clock: &dyn Clock) -> RetryAfter {
    if !headers.contains_key(RETRY_AFTER) {
        return RetryAfter::Absent;
    }
    let lines = headers.get_all(RETRY_AFTER).iter().map(|value| value.as_bytes());
    retry_after::parse(lines, clock.now())
}

/// Where a redirect points: scheme, host and port, nothing that could be a credential.
fn redirect_origin(headers: &HeaderMap, target: &Target) -> Option<String> {
    let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
    let url = Url::parse(target.as_str()).ok()?.join(location).ok()?;
    let host = url.host_str().unwrap_or_default();
    let origin = match url.port_or_known_default() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    };
    (origin.len() <= ORIGIN_BYTES_MAX).then_some(origin)
}

/// Reads a body to its end, the bound, the deadline or the end of the connection, what comes first.
pub(super) async fn body(
    link: &mut Link,
    mut incoming: Incoming,
    limits: Limits,
    mut deadline: Pin<&mut Sleep>,
) -> (Bytes, Option<Cut>) {
    let mut kept = Vec::new();
    let mut read = 0;
    let mut cut = None;
    while !incoming.is_end_stream() {
        let piece = std::future::poll_fn(|cx| match link.poll_body(&mut incoming, cx) {
            Poll::Ready(piece) => Poll::Ready(piece.ok_or(None)),
            Poll::Pending => deadline.as_mut().poll(cx).map(|()| Err(Some(Cut::Deadline))),
        });
        let data = match piece.await {
            Ok(Ok(piece)) => piece.into_data().unwrap_or_default(),
            Ok(Err(_)) => {
                cut = Some(Cut::Reset);
                break;
            }
            Err(end) => {
                cut = end;
                break;
            }
        };
        read += data.len();
        let room = limits.keep_max - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        if read > limits.read_max {
            cut = Some(Cut::Cap);
            break;
        }
    }
    if read > kept.len() {
        kept.truncate(whole_characters(&kept));
        cut = cut.or(Some(Cut::Cap));
    }
    (Bytes::from(kept), cut)
}

/// How many bytes to keep so that a text cut at its end does not end within a character.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let Some(lead) = bytes[tail..].iter().rposition(|&byte| !(0x80..0xc0).contains(&byte)) else {
        return bytes.len();
    };
    let lead = tail + lead;
    let width = match bytes[lead] {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..=0xff => 4,
        _ => 1,
    };
    if lead + width > bytes.len() { lead } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hr_05_an_excerpt_ends_with_a_whole_character() {
        let text = "aé€😀";
        for (cut, whole) in
            [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 3), (6, 6), (7, 6), (9, 6), (10, 10)]
        {
            assert_eq!(whole_characters(&text.as_bytes()[..cut]), whole, "{cut}");
        }
        // What is no text is left as it is, but for at most three bytes.
        assert_eq!(whole_characters(&[0x80; 9]), 9);
        assert_eq!(whole_characters(&[0, 0xff]), 1);
    }
}
