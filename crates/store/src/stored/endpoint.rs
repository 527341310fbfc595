//! Lists, overrides and secrets of an endpoint, packed in columns.
//!
//! Secrets are sealed, with a main key, for the endpoint's public id, so that one cannot be moved
//! to another endpoint.
//! Never: a secret in an error.

use domain::endpoint::LiveSecret;
use domain::ids::PublicId;
use domain::policy::{BreakerOverrides, RetryOn, RetryOverrides};
use resilience::Timestamp;
use webhook::Secret;

use super::codes::Code;
use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use super::seal::{open, seal};
use crate::StoreError;
use crate::cipher::Cipher;

pub(crate) fn pack_headers(headers: &[(String, String)]) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.list(headers, |packer, (name, value)| {
        packer.text(name).text(value);
    });
    packer.done()
}

fn put_code<T: Code>(packer: &mut Packer, value: T) {
    packer.number(value.code().cast_unsigned());
}

fn read_code<T: Code>(packed: &mut Unpacker<'_>) -> Result<T, StoreError> {
    T::of(packed.number()?.cast_signed())
}

pub(crate) fn pack_retry(retry: &RetryOverrides) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.maybe(retry.strategy, put_code);
    for span in [retry.base, retry.cap, retry.age_max] {
        packer.maybe(span, |packer, span| {
            packer.span(span);
        });
    }
    packer.maybe(retry.schedule.as_ref(), |packer, delays| {
        packer.list(delays, |packer, delay| {
            packer.span(*delay);
        });
    });
    packer.maybe(retry.attempts_max, |packer, count| {
        packer.number(u64::from(count));
    });
    packer.maybe(retry.retry_on.as_ref(), pack_retry_on);
    packer.maybe(retry.retry_after, put_code);
    packer.done()
}

fn pack_retry_on(packer: &mut Packer, retry_on: &RetryOn) {
    match retry_on {
        RetryOn::Transient => drop(packer.number(0)),
        RetryOn::All => drop(packer.number(1)),
        RetryOn::Listed(ranges) => {
            packer.number(2).list(ranges, |packer, (low, high)| {
                packer.number(u64::from(*low)).number(u64::from(*high));
            });
        }
    }
}

pub(crate) fn read_retry(packed: &mut Unpacker<'_>) -> Result<RetryOverrides, StoreError> {
    let strategy = packed.maybe(read_code)?;
    let base = packed.maybe(Unpacker::span)?;
    let cap = packed.maybe(Unpacker::span)?;
    let age_max = packed.maybe(Unpacker::span)?;
    let schedule = packed.maybe(|packed| packed.list(Unpacker::span))?;
    let attempts_max = packed.maybe(Unpacker::small)?;
    let retry_on = packed.maybe(|packed| match packed.number()? {
        0 => Ok(RetryOn::Transient),
        1 => Ok(RetryOn::All),
        2 => packed.list(|packed| Ok((packed.small()?, packed.small()?))).map(RetryOn::Listed),
        _ => Err(unreadable()),
    })?;
    let retry_after = packed.maybe(read_code)?;
    Ok(RetryOverrides {
        strategy,
        base,
        cap,
        schedule,
        attempts_max,
        age_max,
        retry_on,
        retry_after,
    })
}

pub(crate) fn pack_breaker(breaker: &BreakerOverrides) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.maybe(breaker.failures, |packer, count| {
        packer.number(u64::from(count));
    });
    for span in [breaker.open_for, breaker.open_for_max] {
        packer.maybe(span, |packer, span| {
            packer.span(span);
        });
    }
    packer.done()
}

pub(crate) fn read_breaker(packed: &mut Unpacker<'_>) -> Result<BreakerOverrides, StoreError> {
    Ok(BreakerOverrides {
        failures: packed.maybe(Unpacker::small)?,
        open_for: packed.maybe(Unpacker::span)?,
        open_for_max: packed.maybe(Unpacker::span)?,
    })
}

/// Packs secrets and, with a cipher, seals them.
pub(crate) fn seal_secrets(
    secrets: &[LiveSecret],
    owner: PublicId,
    cipher: Option<&Cipher>,
) -> Result<Vec<u8>, StoreError> {
    let mut packer = Packer::default();
    packer.list(secrets, |packer, live| {
        packer.text(&live.secret.to_private_text());
        packer.maybe(live.expires_at, |packer, at| {
            packer.number(at.as_micros().cast_unsigned());
        });
    });
    seal(&packer.done(), owner.as_bytes(), cipher)
}

/// Opens and reads secrets.
pub(crate) fn open_secrets(
    stored: &[u8],
    owner: PublicId,
    cipher: Option<&Cipher>,
) -> Result<Vec<LiveSecret>, StoreError> {
    let packed = open(stored, owner.as_bytes(), cipher)?;
    Unpacker::new(&packed).list(|packed| {
        let secret = Secret::parse(&packed.text()?).map_err(|_| unreadable())?;
        let expires_at = packed.maybe(Unpacker::number)?;
        let expires_at = expires_at.map(|at| Timestamp::from_micros(at.cast_signed()));
        Ok(LiveSecret { secret, expires_at })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::policy::Strategy;
    use resilience::RetryAfterMode;

    use super::*;

    #[test]
    fn overrides_come_out_as_they_went_in() {
        let full = RetryOverrides {
            strategy: Some(Strategy::Schedule),
            base: Some(Duration::from_millis(5)),
            cap: None,
            schedule: Some(vec![Duration::ZERO, Duration::from_secs(9)]),
            attempts_max: Some(u32::MAX),
            age_max: Some(Duration::from_secs(1)),
            retry_on: Some(RetryOn::Listed(vec![(400, 418), (500, 599)])),
            retry_after: Some(RetryAfterMode::Ignore),
        };
        for retry in [RetryOverrides::default(), full] {
            let packed = pack_retry(&retry);
            assert_eq!(read_retry(&mut Unpacker::new(&packed)), Ok(retry));
        }
        let breaker = BreakerOverrides { failures: Some(0), open_for: None, open_for_max: None };
        assert_eq!(read_breaker(&mut Unpacker::new(&pack_breaker(&breaker))), Ok(breaker));
    }

    #[test]
    fn sealed_secrets_need_their_key() {
        let secrets = [LiveSecret {
            secret: Secret::from_random_hmac([7; 24]),
            expires_at: Some(Timestamp::from_secs(9)),
        }];
        let (owner, other) = (PublicId::new(1, [1; 12]), PublicId::new(2, [2; 12]));
        let cipher = Cipher::from_main_key("key");
        let sealed = seal_secrets(&secrets, owner, Some(&cipher)).unwrap();
        let text = secrets[0].secret.to_private_text();
        assert!(
            !sealed.windows(8).any(|piece| text.as_bytes().windows(8).any(|part| part == piece))
        );
        let opened = open_secrets(&sealed, owner, Some(&cipher)).unwrap();
        assert_eq!(opened[0].secret.to_private_text(), text);
        assert_eq!(opened[0].expires_at, Some(Timestamp::from_secs(9)));
        let missing = open_secrets(&sealed, owner, None).unwrap_err();
        assert!(missing.to_string().contains("main key"), "{missing}");
        assert!(open_secrets(&sealed, other, Some(&cipher)).is_err());
        let plain = seal_secrets(&secrets, owner, None).unwrap();
        assert_eq!(open_secrets(&plain, owner, Some(&cipher)).unwrap().len(), 1);
    }
}
