//! What a receiver said, fit for a letter: one line of text without secrets.
//!
//! In: bytes from outside, and the secrets that the endpoint has. Out: printable text without line
//! breaks, cut to a length, in which secrets and what looks like one are left out.
//! Never: markup or a header made of it; a letter is plain text, and this is one line of its body.

use std::sync::LazyLock;

use domain::endpoint::Endpoint;
use regex::Regex;

use crate::one_line::one_line;

/// What stands where something was left out.
const LEFT_OUT: &str = "[removed]";
/// Shorter texts of an endpoint are no secrets, and stand in many words.
const SECRET_CHARS_MIN: usize = 4;

/// What looks like a credential, and what is kept of it.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        // User-info of URLs.
        (r"://[^/\s@]*@", "://[removed]@"),
        (r"(?i)\b(bearer|basic|digest|token)\s+[\w.~+/=-]{4,}", "$1 [removed]"),
        (r"\b(whsec|whsk|sk|pk|rk|gh[opsu]|xox[abp])[_-][\w+/=.-]{8,}", "[removed]"),
        (
            r#"(?i)(["']?[\w.-]*(?:auth|cookie|credential|key|passwd|password|pwd|secret|session|signature|token)[\w.-]*["']?\s*[:=]\s*)("[^"]*"?|'[^']*'?|[^\s,;&<>}]+)"#,
            "$1[removed]",
        ),
        // Whatever is long and without a break: hashes, keys, JSON web tokens.
        (r"[\w+/=-]{32,}", "[removed]"),
    ];
    patterns
        .into_iter()
        .filter_map(|(pattern, kept)| Some((Regex::new(pattern).ok()?, kept)))
        .collect()
});

/// One line of at most `chars_max` characters.
pub(super) fn line(said: &[u8], endpoint: &Endpoint, chars_max: usize) -> String {
    let mut text = String::from_utf8_lossy(said).into_owned();
    for secret in secrets(endpoint) {
        text = text.replace(&secret, LEFT_OUT);
    }
    for (pattern, kept) in &*PATTERNS {
        text = pattern.replace_all(&text, *kept).into_owned();
    }
    one_line(&text, chars_max)
}

/// All that an endpoint has and that nobody else should see, longest first.
fn secrets(endpoint: &Endpoint) -> Vec<String> {
    let mut all = Vec::new();
    for live in &endpoint.secrets {
        let text = live.secret.to_private_text();
        if let Some((_, bare)) = text.split_once('_') {
            all.push(bare.to_owned());
        }
        all.push(text);
    }
    all.extend(endpoint.spec.headers.iter().map(|(_, value)| value.clone()));
    let behind_scheme = endpoint.spec.target.as_str().split_once("://").map(|(_, rest)| rest);
    let path = behind_scheme.and_then(|rest| rest.find('/').map(|at| rest[at..].to_owned()));
    all.extend(path);
    all.retain(|text| text.chars().count() >= SECRET_CHARS_MIN);
    all.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    all
}

#[cfg(test)]
mod tests {
    use store::conformance::samples;

    use super::*;

    fn endpoint() -> Endpoint {
        let mut spec = samples::endpoint_to("https://example.com/hook/tr0ub4dor?sig=abcd");
        spec.headers = vec![("x-tenant".to_owned(), "blue-whale".to_owned())];
        let mut endpoint = samples::stored_endpoint(spec);
        endpoint.secrets = vec![samples::secret(1)];
        endpoint
    }

    fn cleaned(text: &str) -> String {
        line(text.as_bytes(), &endpoint(), 300)
    }

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(PATTERNS.len(), 5);
    }

    #[test]
    fn secrets_of_the_endpoint_are_left_out() {
        let endpoint = endpoint();
        let secret = endpoint.secrets[0].secret.to_private_text();
        let bare = secret.split_once('_').unwrap().1.to_owned();
        for told in [secret.as_str(), &bare, "blue-whale", "/hook/tr0ub4dor?sig=abcd"] {
            let text = line(format!("bad request: {told} was sent").as_bytes(), &endpoint, 300);
            assert!(!text.contains(told) && text.contains("was sent"), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_credential_is_left_out() {
        let rows = [
            ("Authorization: Bearer abc.def-ghi", "abc"),
            ("auth failed for Basic dXNlcjpwYXNz now", "dXNl"),
            (r#"{"api_key": "k-12345", "error": "no"}"#, "12345"),
            ("password=hunter2&user=a", "hunter2"),
            ("session_token: 'x y z'", "x y z"),
            ("see https://user:pass@example.com/a", "pass"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ"),
            ("id eyJhbGciOiJIUzI1NiJ9eyJzdWIiOiIxIn0abc", "eyJ"),
            ("key 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ];
        for (text, secret) in rows {
            let cleaned = cleaned(text);
            assert!(!cleaned.contains(secret) && cleaned.contains(LEFT_OUT), "{text} -> {cleaned}");
        }
        for harmless in ["the database is down", "<h1>502 Bad Gateway</h1>", "Überlast – später"]
        {
            assert_eq!(cleaned(harmless), harmless);
        }
    }

    #[test]
    fn it_is_one_line_of_printable_text() {
        let text =
            cleaned("a\r\nBcc: x@example.com\r\n\r\n<script>\0\x1b[31m\u{202e}b\t c\u{2028}d");
        assert_eq!(text, "a Bcc: x@example.com <script> [31m b c d");
        assert_eq!(line(b"\xff\xfea", &endpoint(), 300), "\u{fffd}\u{fffd}a");
        assert_eq!(line("äöü".repeat(9).as_bytes(), &endpoint(), 4), "äöüä…");
        assert_eq!(line(b"", &endpoint(), 4), "");
    }
}
