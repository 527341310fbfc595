//! Identifiers drawn at random: correlation ids and idempotency keys.
//!
//! Never: be guessable; they come from the system's source.

use resilience::FromOs;

use crate::errors::BoxError;

/// A random UUID (version 4).
pub(super) fn random_id() -> Result<String, BoxError> {
    let mut bytes = [0_u8; 16];
    FromOs::fill(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SU1, SU2.
    #[test]
    fn ids_are_random_uuids() {
        let (one, two) = (random_id().unwrap(), random_id().unwrap());
        assert_ne!(one, two);
        let id = uuid::Uuid::parse_str(&one).unwrap();
        assert_eq!(id.get_version_num(), 4);
    }
}
