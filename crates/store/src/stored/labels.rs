//! What a message is sorted by, in one column before its payload: channels, tags, time of delivery,
//! and the trace that its caller is in.
//!
//! Tags and time follow the channels only when there are any, and the trace those, so that rows
//! which were written before they existed read as rows without.
//! Never: a column behind the payload; to reach it the whole payload would be read.

use std::sync::Arc;

use domain::message::MessageSpec;
use domain::trace::{Given, SpanId, TraceId};
use resilience::Timestamp;

use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use crate::StoreError;

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) channels: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) deliver_at: Option<Timestamp>,
    pub(crate) trace: Option<Arc<Given>>,
}

/// Whether a message has any.
pub(crate) fn has_labels(spec: &MessageSpec) -> bool {
    !spec.channels.is_empty() || has_more(spec)
}

/// Whether a message has any but channels.
fn has_more(spec: &MessageSpec) -> bool {
    !spec.tags.is_empty() || spec.deliver_at.is_some() || spec.trace.is_some()
}

/// What to write; `None` for a message without any.
pub(crate) fn labels(spec: &MessageSpec) -> Option<Vec<u8>> {
    if !has_labels(spec) {
        return None;
    }
    let mut packer = Packer::default();
    let mut list = |texts: &[String]| {
        packer.list(texts, |packer, text| {
            packer.text(text);
        });
    };
    list(&spec.channels);
    if has_more(spec) {
        list(&spec.tags);
        packer.maybe(spec.deliver_at, |packer, at| {
            packer.number(at.as_micros().cast_unsigned());
        });
    }
    if let Some(given) = &spec.trace {
        pack_trace(&mut packer, given);
    }
    Some(packer.done())
}

fn pack_trace(packer: &mut Packer, given: &Given) {
    packer.bytes(&given.trace.0).bytes(&given.parent.0).number(u64::from(given.flags));
    packer.text(&given.state);
}

/// Reads them.
pub(crate) fn read(bytes: &[u8]) -> Result<Labels, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let channels = packed.list(Unpacker::text)?;
    if packed.is_empty() {
        return Ok(Labels { channels, ..Labels::default() });
    }
    let tags = packed.list(Unpacker::text)?;
    let deliver_at = packed.maybe(Unpacker::number)?;
    let deliver_at = deliver_at.map(|micros| Timestamp::from_micros(micros.cast_signed()));
    let trace = if packed.is_empty() { None } else { Some(Arc::new(read_trace(&mut packed)?)) };
    if !packed.is_empty() {
        return Err(unreadable());
    }
    Ok(Labels { channels, tags, deliver_at, trace })
}

fn read_trace(packed: &mut Unpacker<'_>) -> Result<Given, StoreError> {
    let (trace, parent) = (TraceId(packed.bytes()?), SpanId(packed.bytes()?));
    Ok(Given { trace, parent, flags: packed.small()?, state: packed.text()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::pack::texts;

    #[test]
    fn rows_from_before_there_were_tags_are_read() {
        let channels = vec!["eu".to_owned()];
        let old = texts(&channels);
        assert_eq!(read(&old), Ok(Labels { channels: channels.clone(), ..Labels::default() }));
        assert!(read(&[&old[..], &[9]].concat()).is_err(), "damage");
    }
}
