//! Traces after the W3C's Trace Context: what a caller brought along, and which ids follow.
//!
//! The trace of a message that brought none follows from its id, and every span follows from
//! message, endpoint and number. So a span has one id, whoever names it, before and after a
//! restart, and nothing is kept for a trace that begins here.
//! Never: draw chance, or keep what no trace needs: `baggage` is not read.

use std::fmt;

use uuid::Uuid;

use crate::ids::PublicId;

/// Bytes of a `tracestate` that are kept, as many as the specification asks for.
pub const STATE_BYTES_MAX: usize = 512;
/// Members of a `tracestate`.
const MEMBERS_MAX: usize = 32;
/// A member with more bytes goes first where there are too many.
const LONG_MEMBER_BYTES: usize = 128;
/// Bytes of a `traceparent` of version 00.
const PARENT_BYTES: usize = 55;
/// The flags that are known: sampled, and that the id is random.
const FLAGS: u8 = 0b11;
const SAMPLED: u8 = 0b01;
/// Of so many traces that begin here a share is sampled.
pub const SHARE_OF: u32 = 1_000_000;

/// The id of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// What a caller brought along: `traceparent`, and `tracestate` in bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its trace.
    pub trace: TraceId,
    /// Its span.
    pub parent: SpanId,
    /// Flags that are known.
    pub flags: u8,
    /// What tracing systems left for each other; may be empty.
    pub state: String,
}

/// The trace that a message is in.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    message: &'a PublicId,
    given: Option<&'a Given>,
}

impl Given {
    /// Reads both headers, each as often as it was given. A `traceparent` that is not one, or comes
    /// twice, is as none: the trace begins anew. A `tracestate` that is none is left out.
    pub fn read<'h>(
        mut parents: impl Iterator<Item = &'h [u8]>,
        states: impl Iterator<Item = &'h [u8]>,
    ) -> Option<Self> {
        let parent = parents.next()?;
        if parents.next().is_some() {
            return None;
        }
        let (trace, parent, flags) = read_parent(std::str::from_utf8(parent).ok()?)?;
        Some(Self { trace, parent, flags, state: read_state(states).unwrap_or_default() })
    }
}

impl<'a> Trace<'a> {
    /// Of this message, which brought that along.
    pub const fn of(message: &'a PublicId, given: Option<&'a Given>) -> Self {
        Self { message, given }
    }

    /// Its id.
    pub fn id(&self) -> TraceId {
        self.given.map_or_else(|| own(self.message), |given| given.trace)
    }

    /// Whether its spans are sampled: as its caller says, and of those that begin here a share, by
    /// their ids, so that it is the same for all spans of one.
    pub fn is_sampled(&self, share: u32) -> bool {
        let Some(given) = self.given else { return in_share(self.id(), share) };
        given.flags & SAMPLED != 0
    }

    /// The span of whoever posted it.
    pub const fn caller(&self) -> Option<SpanId> {
        match self.given {
            Some(given) => Some(given.parent),
            None => None,
        }
    }

    /// The `tracestate`; may be empty.
    pub fn state(&self) -> &'a str {
        self.given.map_or("", |given| given.state.as_str())
    }

    /// The span of its acceptance.
    pub fn accepted(&self) -> SpanId {
        span(self.id(), self.message.as_bytes())
    }

    /// The span of the send of this number to that endpoint.
    pub fn attempt(&self, endpoint: &PublicId, number: u32) -> SpanId {
        let mut name = [0; 44];
        name[..20].copy_from_slice(self.message.as_bytes());
        name[20..40].copy_from_slice(endpoint.as_bytes());
        name[40..].copy_from_slice(&number.to_be_bytes());
        span(self.id(), &name)
    }

    /// The `traceparent` that names `span`.
    pub fn parent(&self, span: SpanId, is_sampled: bool) -> String {
        let kept = self.given.map_or(0, |given| given.flags & !SAMPLED);
        let flags = kept | if is_sampled { SAMPLED } else { 0 };
        format!("00-{}-{span}-{flags:02x}", self.id())
    }

    /// The `traceparent` as its caller gave it.
    pub fn parent_given(&self) -> Option<String> {
        let given = self.given?;
        Some(format!("00-{}-{}-{:02x}", given.trace, given.parent, given.flags))
    }
}

/// The trace of a message that brought none: the 12 random bytes of its id, and four of its key.
fn own(message: &PublicId) -> TraceId {
    let mut id = [0; 16];
    id.copy_from_slice(&message.as_bytes()[4..]);
    // No id is all zero.
    if id == [0; 16] {
        id[15] = 1;
    }
    TraceId(id)
}

/// A span is named by the first bytes of a UUID (version 5), which are never all zero.
fn span(trace: TraceId, name: &[u8]) -> SpanId {
    let mut id = [0; 8];
    id.copy_from_slice(&Uuid::new_v5(&Uuid::from_bytes(trace.0), name).as_bytes()[..8]);
    SpanId(id)
}

/// The last seven bytes decide, as the specification has it for ids that are random there.
fn in_share(id: TraceId, share: u32) -> bool {
    let random = id.0[9..].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let part = (u128::from(random) * u128::from(SHARE_OF)) >> 56;
    part >= u128::from(SHARE_OF.saturating_sub(share))
}

fn read_parent(text: &str) -> Option<(TraceId, SpanId, u8)> {
    let bytes = text.as_bytes();
    let is_long = bytes.len() > PARENT_BYTES;
    if bytes.len() < PARENT_BYTES || (is_long && bytes[PARENT_BYTES] != b'-') {
        return None;
    }
    if bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
        return None;
    }
    let [version] = hex(&bytes[..2])?;
    // Later versions begin like this one; 255 is none.
    if version == u8::MAX || (version == 0 && is_long) {
        return None;
    }
    let (trace, parent) = (hex(&bytes[3..35])?, hex(&bytes[36..52])?);
    let [flags] = hex(&bytes[53..PARENT_BYTES])?;
    let is_there = trace != [0; 16] && parent != [0; 8];
    is_there.then_some((TraceId(trace), SpanId(parent), flags & FLAGS))
}

/// Lower case only.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

/// All members in their order, in bounds; `None` when one of them is none.
fn read_state<'h>(headers: impl Iterator<Item = &'h [u8]>) -> Option<String> {
    let mut members: Vec<&str> = Vec::new();
    for header in headers {
        for member in std::str::from_utf8(header).ok()?.split(',') {
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            let key = key_of(member)?;
            let is_known = members.iter().any(|other| key_of(other) == Some(key));
            if is_known || members.len() == MEMBERS_MAX {
                return None;
            }
            members.push(member);
        }
    }
    let bytes = |members: &[&str]| {
        let commas = members.len().saturating_sub(1);
        members.iter().map(|member| member.len()).sum::<usize>() + commas
    };
    // The last ones are the oldest.
    while bytes(&members) > STATE_BYTES_MAX {
        let long = members.iter().rposition(|member| member.len() > LONG_MEMBER_BYTES);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    Some(members.join(","))
}

/// The key of a member, if it is one.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let begins = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_of_key = |byte: u8| begins(&byte) || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@');
    let is_key = key.as_bytes().first().is_some_and(begins)
        && key.len() <= 256
        && key.bytes().all(is_of_key);
    let is_value = (1..=256).contains(&value.len())
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=');
    (is_key && is_value).then_some(key)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

#[cfg(test)]
mod tests;
