//! What a proxy said in place of a way: whose fault it is, and the words for it.
//!
//! Only what cannot depend on the target is ours: that pauses all sending and counts against
//! nobody, so that no choice of a URL may bring it about. All else is the target's; when it happens
//! to nearly every target, sending pauses all the same.
//! In: a status or a reply. Out: a `Failure`.
//! Never: repeat what the proxy wrote.

use domain::attempt::{Failure, FailureKind};

use crate::transport::fault::failure;

/// No 2xx. `wants_credentials`: it says which credentials it would take.
///
/// Some proxies answer 407 for targets that their rules forbid, and then do not ask for any; others
/// ask for them with 401.
pub(super) fn status(status: u16, wants_credentials: bool) -> Failure {
    match status {
        401 | 407 if wants_credentials => {
            ours(&format!("the proxy does not take our credentials ({status})"))
        }
        405 | 501 => ours(&format!("the proxy opens no tunnels ({status})")),
        401 | 403 | 407 | 451 => {
            theirs(&format!("the proxy does not let us connect to the host ({status})"))
        }
        502..=504 => theirs(&format!("the proxy could not connect to the host ({status})")),
        _ => theirs(&format!("the proxy answered {status}")),
    }
}

/// A reply of SOCKS5 that is not 0.
pub(super) fn reply(code: u8) -> Failure {
    let why = match code {
        1 => "general failure",
        2 => return theirs("the proxy does not let us connect to the host (SOCKS reply 2)"),
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "connection timed out",
        7 => return ours("the proxy opens no connections (SOCKS reply 7)"),
        8 => "not for this kind of address",
        _ => return theirs(&format!("the proxy answered with SOCKS reply {code}")),
    };
    theirs(&format!("the proxy could not connect to the host: {why} (SOCKS reply {code})"))
}

/// The connection ended before the proxy had answered.
pub(super) fn ended() -> Failure {
    theirs("the proxy closed the connection instead of an answer")
}

/// Something other than this kind of proxy answers.
pub(super) fn no_proxy(kind: &str) -> Failure {
    ours(&format!("what answers as the proxy is no {kind} proxy"))
}

/// It refused us before it knew where to.
pub(super) fn ours(text: &str) -> Failure {
    failure(FailureKind::Internal, text)
}

fn theirs(text: &str) -> Failure {
    failure(FailureKind::Connect, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rp_03_only_what_no_target_can_bring_about_is_ours() {
        for (wrong, kind) in [
            (status(407, true), FailureKind::Internal),
            (status(401, true), FailureKind::Internal),
            (status(405, false), FailureKind::Internal),
            (status(501, false), FailureKind::Internal),
            (status(401, false), FailureKind::Connect),
            (status(407, false), FailureKind::Connect),
            (status(403, true), FailureKind::Connect),
            (status(400, false), FailureKind::Connect),
            (status(404, false), FailureKind::Connect),
            (status(429, false), FailureKind::Connect),
            (status(500, false), FailureKind::Connect),
            (status(502, false), FailureKind::Connect),
            (status(503, false), FailureKind::Connect),
            (status(504, false), FailureKind::Connect),
            (status(301, false), FailureKind::Connect),
            (reply(7), FailureKind::Internal),
            (no_proxy("SOCKS5"), FailureKind::Internal),
            (ended(), FailureKind::Connect),
        ] {
            assert_eq!(wrong.kind, kind, "{}", wrong.text);
            assert!(wrong.text.contains("proxy") && !wrong.text.contains('\n'));
        }
        for code in (1..=u8::MAX).filter(|code| *code != 7) {
            assert_eq!(reply(code).kind, FailureKind::Connect, "{code}");
            assert!(reply(code).text.contains(&code.to_string()));
        }
    }
}
