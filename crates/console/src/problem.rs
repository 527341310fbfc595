//! What the server says when it refuses, as one line.
//!
//! In: status and body of an answer. Out: `field: rule` for each field, or the detail and the code.
//! Never: more of a foreign answer than its beginning.

use http::StatusCode;
use serde::Deserialize;

use crate::safe::safe;

/// Characters that are shown of a body that is no problem of Peyk.
const EXCERPT_CHARS: usize = 200;

#[derive(Deserialize)]
struct Coded {
    code: String,
    detail: String,
}

#[derive(Deserialize)]
struct Fields {
    detail: Vec<FieldFault>,
}

#[derive(Deserialize)]
struct FieldFault {
    loc: Vec<String>,
    msg: String,
}

/// One line, safe for a terminal.
pub(crate) fn line(status: StatusCode, body: &[u8]) -> String {
    let mut said = if let Ok(fields) = serde_json::from_slice::<Fields>(body) {
        let rules = fields.detail.iter().map(|fault| {
            // The first word says where the field was: body, path or query.
            let field = fault.loc.get(1..).unwrap_or_default().join(".");
            if field.is_empty() { fault.msg.clone() } else { format!("{field}: {}", fault.msg) }
        });
        rules.collect::<Vec<_>>().join("; ")
    } else if let Ok(Coded { code, detail }) = serde_json::from_slice(body) {
        format!("{detail} ({code})")
    } else {
        let text = String::from_utf8_lossy(body);
        let excerpt: String = text.trim().chars().take(EXCERPT_CHARS).collect();
        let gap = if excerpt.is_empty() { "" } else { ": " };
        format!("the server answered {}, not in the manner of Peyk{gap}{excerpt}", status.as_u16())
    };
    if status == StatusCode::UNAUTHORIZED {
        said.push_str("; `peyk token` makes a token, --token or PEYK_TOKEN brings it");
    }
    safe(&said).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        let table = [
            (
                404,
                r#"{"code":"not_found","detail":"Entity not found"}"#,
                "Entity not found (not_found)",
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","url"],"msg":"must be http","type":"value_error"},
                    {"loc":["body","retryPolicy","base"],"msg":"is no span","type":"x"}]}"#,
                "url: must be http; retryPolicy.base: is no span",
            ),
            (422, r#"{"detail":[{"loc":["body"],"msg":"is no JSON","type":"x"}]}"#, "is no JSON"),
            (
                502,
                "<html>\n\x1b[31m</html>",
                "the server answered 502, not in the manner of Peyk: <html>\\n\\u{1b}[31m</html>",
            ),
            (204, "", "the server answered 204, not in the manner of Peyk"),
        ];
        for (status, body, said) in table {
            assert_eq!(line(StatusCode::from_u16(status).unwrap(), body.as_bytes()), said);
        }
    }

    #[test]
    fn a_refused_token_is_explained() {
        let body = br#"{"code":"authentication_failed","detail":"Invalid token"}"#;
        assert!(line(StatusCode::UNAUTHORIZED, body).contains("PEYK_TOKEN"));
    }
}
