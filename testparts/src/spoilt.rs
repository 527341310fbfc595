//! Input for fuzz tests: texts that are nearly right.
//!
//! Never: bytes without any sense alone; most readers turn those away at the first.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One of `good`, with up to five bytes put in, changed, cut off or said twice; often as it was.
pub fn spoilt(good: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (0_u8..5, any::<Index>(), prop_oneof![any::<u8>(), b' '..=b'~']);
    (select(good), prop::collection::vec(edit, 0..6)).prop_map(|(mut bytes, edits)| {
        for (what, at, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match (what, bytes.get_mut(at)) {
                (0, _) => bytes.insert(at, byte),
                (1, _) => bytes.truncate(at),
                (2, _) => bytes.extend_from_within(..at),
                (_, Some(changed)) => *changed = byte,
                (_, None) => {}
            }
        }
        bytes
    })
}
