//! Kept answers: for whom they are sealed, and what they tell of, packed.
//!
//! Never: a number with a second meaning.

use domain::ids::{AppKey, EndpointKey, PublicId};
use resilience::Timestamp;

use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use crate::StoreError;
use crate::recall::Made;

/// Nothing else is sealed for such an owner: ids are longer.
pub(crate) fn owner(scope: &[u8; 16]) -> [u8; 17] {
    let mut owner = [b'k'; 17];
    owner[1..].copy_from_slice(scope);
    owner
}

/// The numbers stay as they are.
pub(crate) fn pack(made: &Made) -> Vec<u8> {
    let mut packer = Packer::default();
    match made {
        Made::Nothing => packer.number(0),
        Made::Application(key) => packer.number(1).number(key.0.cast_unsigned()),
        Made::Endpoint(key) => packer.number(2).number(key.0.cast_unsigned()),
        Made::EventType { org, name, created_at } => {
            packer.number(3).text(name).number(created_at.as_micros().cast_unsigned());
            packer.list(org.as_bytes(), |packer, byte| {
                packer.number(u64::from(*byte));
            })
        }
    };
    packer.done()
}

/// Reads what [`pack`] made.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Made, StoreError> {
    let mut packed = Unpacker::new(bytes);
    Ok(match packed.number()? {
        0 => Made::Nothing,
        1 => Made::Application(AppKey(packed.number()?.cast_signed())),
        2 => Made::Endpoint(EndpointKey(packed.number()?.cast_signed())),
        3 => {
            let name = packed.text()?;
            let created_at = Timestamp::from_micros(packed.number()?.cast_signed());
            let org = packed.list(Unpacker::small)?.try_into().map_err(|_| unreadable())?;
            Made::EventType { org: PublicId::from_bytes(org), name, created_at }
        }
        _ => return Err(unreadable()),
    })
}
