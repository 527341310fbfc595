//! Rules for what a payload may hold beside its size, so that whoever reads it back can.
//!
//! In: JSON as it is spelled. Out: nothing, or the rule it breaks. Most payloads are only counted
//! through: what has few brackets is not deep, and what has no digits far apart has no long number.
//! Never: turn a payload into values, or look for what is no JSON.

use crate::error::Invalid;
use crate::limits::{PAYLOAD_DIGITS_MAX, PAYLOAD_LEVELS_MAX};

/// Checks levels and numbers of a JSON text.
pub fn check(field: &str, json: &[u8]) -> Result<(), Invalid> {
    let may_be_deep = json.iter().filter(|byte| opens(**byte)).count() > PAYLOAD_LEVELS_MAX;
    let is_digit_at = |at: usize| json.get(at).is_some_and(u8::is_ascii_digit);
    let may_be_long = (PAYLOAD_DIGITS_MAX..json.len()).step_by(PAYLOAD_DIGITS_MAX).any(is_digit_at);
    if may_be_deep || may_be_long { scan(field, json) } else { Ok(()) }
}

const fn opens(byte: u8) -> bool {
    matches!(byte, b'{' | b'[')
}

fn scan(field: &str, json: &[u8]) -> Result<(), Invalid> {
    let (mut levels, mut digits) = (0_usize, 0_usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in json {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        match byte {
            b'"' => is_text = true,
            b'{' | b'[' => levels += 1,
            b'}' | b']' => levels = levels.saturating_sub(1),
            _ => {}
        }
        if levels > PAYLOAD_LEVELS_MAX {
            let rule = format!("must not be nested more than {PAYLOAD_LEVELS_MAX} levels deep");
            return Err(Invalid::new(field, rule));
        }
        if digits > PAYLOAD_DIGITS_MAX {
            let rule = format!(
                "must not hold a number with more than {PAYLOAD_DIGITS_MAX} digits in a row"
            );
            return Err(Invalid::new(field, rule));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(json: &str) -> bool {
        check("payload", json.as_bytes()).is_ok()
    }

    #[test]
    fn a_payload_has_so_many_levels() {
        let deep = |levels: usize| {
            let inner = levels - 1;
            format!(r#"{{"a":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
        };
        assert!(fits(&deep(PAYLOAD_LEVELS_MAX)) && !fits(&deep(PAYLOAD_LEVELS_MAX + 1)));
        assert!(!fits(&deep(200_000)));
        // Wide is not deep, and brackets in texts are none.
        assert!(fits(&format!(r#"{{"a":[{}1]}}"#, "[1],".repeat(1_000))));
        for text in ["[", r#"\"["#, r#"[\\"#] {
            let text = text.repeat(1_000);
            assert!(fits(&format!(r#"{{"a":"{text}","b":[{{}}]}}"#)), "{text}");
        }
        let behind = format!(r#"{{"a":"\\","b":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert!(!fits(&behind));
    }

    #[test]
    fn a_number_has_so_many_digits() {
        let number = |digits: usize| format!(r#"{{"a":{}}}"#, "9".repeat(digits));
        assert!(fits(&number(PAYLOAD_DIGITS_MAX)) && !fits(&number(PAYLOAD_DIGITS_MAX + 1)));
        for before in [0, 1, 1_999, 2_000, 3_998, 3_999, 4_000, 7_777] {
            let digits = "1".repeat(PAYLOAD_DIGITS_MAX + 1);
            let json = format!(r#"{{"a":"{}","b":-{digits}}}"#, "x".repeat(before));
            assert!(!fits(&json), "{before}");
            let json = format!(r#"{{"a":"{}","b":0.{digits}e1}}"#, "x".repeat(before));
            assert!(!fits(&json), "{before}");
            let json = format!(r#"{{"a":"{}{digits}"}}"#, "x".repeat(before));
            assert!(fits(&json), "digits of a text: {before}");
        }
    }
}
