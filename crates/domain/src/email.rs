//! Addresses that people are written to.
//!
//! In: text from callers and settings. Out: an address that stands in a header as it is: ASCII,
//! `local@domain`, no name, no quotes, no address literal.
//! Never: ask whether anybody reads it.

use email_address::{EmailAddress as Checked, Options};

use crate::error::Invalid;
use crate::limits::EMAIL_BYTES_MAX;

/// An e-mail address, valid by construction.
#[derive(Clone, PartialEq, Eq)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Reads an address; `field` is named where it breaks the rule.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        if text.len() > EMAIL_BYTES_MAX {
            return Err(Invalid::new(field, format!("must be at most {EMAIL_BYTES_MAX} bytes")));
        }
        let options = Options::default().without_domain_literal().without_display_text();
        // What a quoted part may hold, like blanks and commas, is not worth the care it needs.
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        if plain && Checked::parse_with_options(text, options).is_ok() {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new(field, "must be an e-mail address like ops@example.com"))
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands behind the `@`.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// Logs may hold what `Debug` shows, and an address is a person's.
impl std::fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EmailAddress(…@{})", self.domain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_address_is_refused() {
        for good in
            ["ops@example.com", "a.b+c@sub.example.co", "o'neil@x-y.example", "root@localhost"]
        {
            assert_eq!(EmailAddress::parse("contactEmail", good).unwrap().as_str(), good);
        }
        let long = format!("{}@example.com", "a".repeat(300));
        let bad = [
            "",
            "a",
            "@",
            "a@",
            "@b.example",
            "a@b@c.example",
            "a b@c.example",
            "a@b c.example",
            "\"a b\"@c.example",
            "Ann <a@b.example>",
            "<a@b.example>",
            "a@[127.0.0.1]",
            "a@b.example\r\nBcc: c@d.example",
            "a@b.example\n",
            "a,b@c.example",
            "a@b.example,c@d.example",
            "zoë@b.example",
            "a@bücher.example",
            ".a@b.example",
            "a..b@c.example",
            "a@-b.example",
            "a@b..example",
            "a@b.example;c",
            "a\0@b.example",
            &long,
        ];
        for text in bad {
            let fault = EmailAddress::parse("contactEmail", text).expect_err(text);
            assert_eq!(fault.loc, ["body", "contactEmail"], "{text:?}");
        }
    }

    #[test]
    fn debug_does_not_show_whose_it_is() {
        let address = EmailAddress::parse("to", "zoe@example.com").unwrap();
        assert_eq!(format!("{address:?}"), "EmailAddress(…@example.com)");
    }
}
