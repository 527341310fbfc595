//! Custom headers of an endpoint: which may be set, and which are not shown again.
//!
//! A value is literal: no templates, no trimming, no cutting; it goes out in UTF-8. What
//! passes here, the client can send.
//! Never: let a custom header replace one that the server sets, the signature above all.

use http::{HeaderName, HeaderValue};

use crate::error::Invalid;
use crate::limits::{HEADER_NAME_BYTES_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_MAX};

/// Names that may not be set; lower case, `-` for `_`.
const FORBIDDEN: [&str; 21] = [
    // Set by the server, or decide where a request goes and where it ends.
    "connection",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-idempotency-key",
    // Have no meaning on a request from here; refused by the wire contract.
    "age",
    "cache-control",
    "clear-site-data",
    "expires",
    "pragma",
    "warning",
];

/// Beginnings of names that may not be set.
const FORBIDDEN_PREFIXES: [&str; 12] = [
    "content-", "proxy-", "svix-", "webhook-", "x-amz-", "x-amzn-", "x-azure-", "x-fd-", "x-gfe",
    "x-goog-", "x-google", "x-svix-",
];

/// Parts of names whose values are never read back. The six names of the wire contract
/// (`authorization`, `x-api-key` …) are among those that they catch.
const SENSITIVE: [&str; 10] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passwd",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];

/// Whether one header may be set.
pub fn validate(name: &str, value: &str) -> Result<(), Invalid> {
    let refuse = |rule: String| Err(Invalid::new(name, rule).within("headers"));
    if name.len() > HEADER_NAME_BYTES_MAX {
        return Err(Invalid::new(
            "headers",
            format!("must have names of at most {HEADER_NAME_BYTES_MAX} bytes"),
        ));
    }
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return refuse("is not a header name".into());
    }
    if is_forbidden(name) {
        return refuse("is set by the server or has no place on a delivery".into());
    }
    if value.len() > HEADER_VALUE_BYTES_MAX {
        return refuse(format!("must have a value of at most {HEADER_VALUE_BYTES_MAX} bytes"));
    }
    if HeaderValue::from_str(value).is_err() {
        return refuse("must have a value without control characters".into());
    }
    Ok(())
}

/// Whether these headers may be set together: each by itself, not too many, none twice.
pub fn validate_all(headers: &[(String, String)]) -> Result<(), Invalid> {
    if headers.len() > HEADERS_MAX {
        return Err(Invalid::new("headers", format!("must be at most {HEADERS_MAX}")));
    }
    for (at, (name, value)) in headers.iter().enumerate() {
        validate(name, value)?;
        if headers[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            let rule = "must not be given twice; case makes no difference";
            return Err(Invalid::new(name, rule).within("headers"));
        }
    }
    Ok(())
}

/// Whether a custom header may not have this name.
///
/// `_` counts as `-`: many receivers hand headers on as variables, where the two are the same, and
/// `webhook_signature` would stand in for `webhook-signature`.
pub fn is_forbidden(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    FORBIDDEN.contains(&name.as_str())
        || FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the value of this header may be a credential, and is never read back.
///
/// It hides a value too many rather than show one that opens something.
pub fn is_sensitive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENSITIVE.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
