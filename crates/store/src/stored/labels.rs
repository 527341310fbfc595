//! What a message is sorted by, in one column before its payload: channels, tags, time of delivery.
//!
//! Tags and time follow the channels only when there are any, so that rows which were written
//! before they existed read as rows without.
//! Never: a column behind the payload; to reach it the whole payload would be read.

use domain::message::MessageSpec;
use resilience::Timestamp;

use super::pack::{Packer, Unpacker};
use crate::StoreError;

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) channels: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) deliver_at: Option<Timestamp>,
}

/// What to write; `None` for a message without any.
pub(crate) fn labels(spec: &MessageSpec) -> Option<Vec<u8>> {
    let more = !spec.tags.is_empty() || spec.deliver_at.is_some();
    if spec.channels.is_empty() && !more {
        return None;
    }
    let mut packer = Packer::default();
    let mut list = |texts: &[String]| {
        packer.list(texts, |packer, text| {
            packer.text(text);
        });
    };
    list(&spec.channels);
    if more {
        list(&spec.tags);
        packer.maybe(spec.deliver_at, |packer, at| {
            packer.number(at.as_micros().cast_unsigned());
        });
    }
    Some(packer.done())
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
    Ok(Labels { channels, tags, deliver_at })
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
