//! Reading a request by a described [`Scheme`] into a [`Claim`].
//!
//! In come all headers; out go the id, the time and the signatures that the scheme names.
//!
//! Never: one of two differing lines picked; a signature accepted that is not written whole.

use data_encoding::HEXLOWER_PERMISSIVE;

use crate::claim::{Claim, HMAC, base64, timestamp};
use crate::content::is_safe_id;
use crate::error::{Name, SIGNATURES_MAX, VerifyError};
use crate::headers::set;
use crate::scheme::{Encoding, Layout, Part, Scheme, TimestampIn};

#[cfg(test)]
mod tests;

/// Bytes of an HMAC-SHA256 in hex.
const HEX_BYTES: usize = 64;

/// The headers that a scheme names, as far as they were found.
pub(crate) struct Found<V> {
    signature: Option<V>,
    timestamp: Option<V>,
    id: Option<V>,
}

impl<V: AsRef<[u8]>> Found<V> {
    pub(crate) fn find<N: AsRef<str>>(
        scheme: &Scheme,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, VerifyError> {
        let timestamp_header = match &scheme.timestamp {
            Some(TimestampIn::Header(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut found = Self { signature: None, timestamp: None, id: None };
        for (name, value) in headers {
            let is = |wanted: &str| name.as_ref().eq_ignore_ascii_case(wanted);
            if is(&scheme.signature_header) {
                set(&mut found.signature, value, &scheme.signature_header)?;
            } else if let Some(wanted) = timestamp_header.filter(|wanted| is(wanted)) {
                set(&mut found.timestamp, value, wanted)?;
            } else if let Some(wanted) = scheme.id_header.as_deref().filter(|wanted| is(wanted)) {
                set(&mut found.id, value, wanted)?;
            }
        }
        Ok(found)
    }
}

impl<'a> Claim<'a> {
    /// By a scheme of somebody's own.
    pub(crate) fn custom<V: AsRef<[u8]>>(
        scheme: &'a Scheme,
        found: &'a Found<V>,
        body: &'a [u8],
    ) -> Result<Self, VerifyError> {
        let line = present(found.signature.as_ref(), &scheme.signature_header)?;
        let time = match &scheme.timestamp {
            None => None,
            Some(TimestampIn::Header(name)) => Some(present(found.timestamp.as_ref(), name)?),
            Some(TimestampIn::Field(name)) => Some(only_field(line, name, scheme)?),
        };
        let time = time.map(timestamp).transpose()?;
        let id = scheme.id_header.as_ref();
        let id = id.map(|name| present(found.id.as_ref(), name).and_then(safe_id)).transpose()?;
        let part = |part: &'a Part| match part {
            Part::Id => id.unwrap_or_default().as_bytes(),
            Part::Timestamp => time.map_or("", |(text, _)| text).as_bytes(),
            Part::Body => body,
            Part::Text(text) => text.as_bytes(),
        };
        Ok(Self {
            id,
            timestamp: time.map(|(_, time)| time),
            content: scheme.content.iter().map(part).collect(),
            signatures: signatures(line, scheme)?,
        })
    }
}

fn present<'a, V: AsRef<[u8]>>(value: Option<&'a V>, name: &str) -> Result<&'a [u8], VerifyError> {
    value.map(AsRef::as_ref).ok_or_else(|| VerifyError::MissingHeader(owned(name)))
}

fn owned(name: &str) -> Name {
    name.to_owned().into()
}

fn safe_id(bytes: &[u8]) -> Result<&str, VerifyError> {
    let id = std::str::from_utf8(bytes).map_err(|_| VerifyError::MalformedId)?;
    if is_safe_id(id) { Ok(id) } else { Err(VerifyError::MalformedId) }
}

/// The values of all fields of this name in `a=1,b=2`.
fn fields<'a>(line: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    line.split(|byte| *byte == b',').filter_map(move |field| {
        let field = field.trim_ascii();
        field.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
    })
}

fn only_field<'a>(line: &'a [u8], name: &str, scheme: &Scheme) -> Result<&'a [u8], VerifyError> {
    let mut values = fields(line, name);
    let first = values.next();
    let header = || owned(&scheme.signature_header);
    if values.any(|value| Some(value) != first) {
        return Err(VerifyError::ConflictingHeader(header()));
    }
    first.ok_or_else(|| VerifyError::MissingHeader(header()))
}

fn signatures(line: &[u8], scheme: &Scheme) -> Result<Vec<(&'static str, Vec<u8>)>, VerifyError> {
    let texts: Vec<&[u8]> = match &scheme.layout {
        Layout::Prefixed(prefix) => line.strip_prefix(prefix.as_bytes()).into_iter().collect(),
        Layout::Fields(name) => fields(line, name).take(SIGNATURES_MAX + 1).collect(),
    };
    if texts.len() > SIGNATURES_MAX {
        return Err(VerifyError::TooManySignatures);
    }
    let decoded = texts.into_iter().filter_map(|text| match scheme.encoding {
        Encoding::Hex if text.len() != HEX_BYTES => None,
        Encoding::Hex => HEXLOWER_PERMISSIVE.decode(text).ok(),
        Encoding::Base64 => base64(text),
    });
    Ok(decoded.map(|signature| (HMAC, signature)).collect())
}
