//! What a task is to do and how far it is, packed in two columns.
//!
//! Never: a number with a second meaning; codes and their order stay as they are.

use std::collections::BTreeMap;

use domain::dead_letter::DeadReason;
use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;

use super::codes::Code as _;
use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use crate::StoreError;
use crate::history::{MessageFilter, SentFilter, Standing};
use crate::tasks::{During, Letters, TaskKind, TaskSpec, Work};

/// What [`read_work`] gives: what is to be done, at which rate, and how many there are.
pub(crate) type Packed = (Work, Option<u32>, Option<u64>);

/// Stands before a run of refusals.
const RUN_FOLLOWS: u64 = 1;

pub(crate) fn work(spec: &TaskSpec) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.number(spec.work.kind().code().cast_unsigned());
    packer.maybe(spec.rate_per_s.map(u64::from), number);
    packer.maybe(spec.total, number);
    match &spec.work {
        Work::Recover(during) | Work::Missing(during) => span(&mut packer, during),
        Work::Again(filter, class) => {
            let MessageFilter { channel, tag, event_types, before, after } = &filter.message;
            packer.maybe(channel.as_deref(), text).maybe(tag.as_deref(), text);
            packer.list(event_types, |packer, name| text(packer, name));
            span(&mut packer, &During { since: *after, until: *before });
            packer.list(&filter.standings, |packer, standing| {
                packer.number(standing.code().cast_unsigned());
            });
            packer.maybe(class.map(u64::from), number);
        }
        Work::DeadLetters(letters) => {
            packer.list(&letters.reasons, |packer, reason| {
                packer.number(reason.code().cast_unsigned());
            });
            packer.list(&letters.event_types, |packer, name| text(packer, name));
            span(&mut packer, &letters.during);
            packer.list(&letters.ids, |packer, (endpoint, message)| {
                packer.number(endpoint.0.cast_unsigned()).number(message.0);
            });
            // Letters were packed without it before there were runs.
            if let Some(run) = letters.run {
                packer.number(RUN_FOLLOWS).number(run.as_micros().cast_unsigned());
            }
        }
        Work::Purge => {}
        Work::Outage(since) => number(&mut packer, since.as_micros().cast_unsigned()),
    }
    packer.done()
}

pub(crate) fn read_work(bytes: &[u8]) -> Result<Packed, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let kind = TaskKind::of(code(&mut packed)?)?;
    let rate_per_s = packed.maybe(Unpacker::small)?;
    let total = packed.maybe(Unpacker::number)?;
    let work = match kind {
        TaskKind::Recover => Work::Recover(read_span(&mut packed)?),
        TaskKind::Missing => Work::Missing(read_span(&mut packed)?),
        TaskKind::Again => {
            let (channel, tag) = (packed.maybe(Unpacker::text)?, packed.maybe(Unpacker::text)?);
            let event_types = packed.list(Unpacker::text)?;
            let During { since, until } = read_span(&mut packed)?;
            let message = MessageFilter { channel, tag, event_types, before: until, after: since };
            let standings = packed.list(|packed| Standing::of(code(packed)?))?;
            let filter = SentFilter { message, standings, payloads: false };
            Work::Again(filter, packed.maybe(Unpacker::small)?)
        }
        TaskKind::DeadLetters => Work::DeadLetters(Letters {
            reasons: packed.list(|packed| DeadReason::of(code(packed)?))?,
            event_types: packed.list(Unpacker::text)?,
            during: read_span(&mut packed)?,
            ids: packed.list(|packed| {
                let endpoint = EndpointKey(packed.number()?.cast_signed());
                Ok((endpoint, MessageKey(packed.number()?)))
            })?,
            run: match packed.is_empty() {
                true => None,
                false if packed.number()? == RUN_FOLLOWS => {
                    Some(Timestamp::from_micros(code(&mut packed)?))
                }
                false => return Err(unreadable()),
            },
        }),
        TaskKind::Purge => Work::Purge,
        TaskKind::Outage => Work::Outage(Timestamp::from_micros(code(&mut packed)?)),
    };
    if packed.is_empty() { Ok((work, rate_per_s, total)) } else { Err(unreadable()) }
}

pub(crate) fn cursor(cursor: &BTreeMap<EndpointKey, u64>) -> Vec<u8> {
    let places: Vec<_> = cursor.iter().collect();
    let mut packer = Packer::default();
    packer.list(&places, |packer, (endpoint, place)| {
        packer.number(endpoint.0.cast_unsigned()).number(**place);
    });
    packer.done()
}

pub(crate) fn read_cursor(bytes: &[u8]) -> Result<BTreeMap<EndpointKey, u64>, StoreError> {
    let places = Unpacker::new(bytes).list(|packed| {
        let endpoint = EndpointKey(packed.number()?.cast_signed());
        Ok((endpoint, packed.number()?))
    })?;
    Ok(places.into_iter().collect())
}

fn number(packer: &mut Packer, value: u64) {
    packer.number(value);
}

fn text(packer: &mut Packer, value: &str) {
    packer.text(value);
}

fn code(packed: &mut Unpacker<'_>) -> Result<i64, StoreError> {
    Ok(packed.number()?.cast_signed())
}

fn span(packer: &mut Packer, during: &During) {
    let micros = |at: Timestamp| at.as_micros().cast_unsigned();
    packer.maybe(during.since.map(micros), number).maybe(during.until.map(micros), number);
}

fn read_span(packed: &mut Unpacker<'_>) -> Result<During, StoreError> {
    let mut time = || {
        let micros = packed.maybe(Unpacker::number)?;
        Ok::<_, StoreError>(micros.map(|micros| Timestamp::from_micros(micros.cast_signed())))
    };
    Ok(During { since: time()?, until: time()? })
}

#[cfg(test)]
mod tests {
    use domain::ids::{AppKey, PublicId};

    use super::*;

    fn spec(work: Work) -> TaskSpec {
        let (org, app) = (PublicId::from_bytes([1; 20]), AppKey(1));
        TaskSpec { org, app, endpoint: None, work, rate_per_s: Some(7), total: None }
    }

    /// What is packed comes out again, and nothing else does.
    fn check(work: Work) {
        let spec = spec(work);
        let bytes = super::work(&spec);
        assert_eq!(read_work(&bytes), Ok((spec.work.clone(), Some(7), None)));
        assert!(read_work(&bytes[..bytes.len() - 1]).is_err(), "{:?}", spec.work);
        assert!(read_work(&[&bytes[..], &[0]].concat()).is_err(), "{:?}", spec.work);
    }

    #[test]
    fn every_kind_of_work_comes_out_as_it_went_in() {
        let during = During { since: Some(Timestamp::from_micros(-5)), until: None };
        check(Work::Recover(during));
        check(Work::Missing(During::default()));
        let message = MessageFilter {
            channel: Some("eu".into()),
            tag: None,
            event_types: vec!["a".into(), "b".into()],
            before: Some(Timestamp::from_secs(9)),
            after: None,
        };
        let standings = vec![Standing::Dead, Standing::Delivered];
        check(Work::Again(SentFilter { message, standings, payloads: false }, Some(500)));
        let letters = Letters {
            reasons: vec![DeadReason::Gone, DeadReason::Expired],
            event_types: vec!["a".into()],
            during,
            ids: vec![(EndpointKey(1), MessageKey(u64::MAX)), (EndpointKey(2), MessageKey(3))],
            run: None,
        };
        check(Work::DeadLetters(letters.clone()));
        let run = Some(Timestamp::from_micros(-7));
        check(Work::DeadLetters(Letters { run, ..letters }));
        check(Work::Purge);
        check(Work::Outage(Timestamp::from_micros(-5)));
        let places = BTreeMap::from([(EndpointKey(0), 5), (EndpointKey(9), u64::MAX)]);
        assert_eq!(read_cursor(&cursor(&places)), Ok(places));
    }
}
