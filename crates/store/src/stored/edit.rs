//! An edit in one column.
//!
//! Never: trust what is read back.

use domain::edit::{Change, ChangeKind, Content, Edit};

use super::fault::unreadable;
use super::pack::{Packer, Unpacker};
use crate::StoreError;

/// What to write.
pub(crate) fn packed(edit: &Edit) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.text(&edit.by);
    for content in [&edit.before, &edit.after] {
        packer.number(content.bytes).bytes(&content.hash);
    }
    packer.list(&edit.changes, |packer, change| {
        packer.number(code(change.kind)).text(&change.place);
    });
    packer.number(edit.more);
    packer.done()
}

/// Reads it.
pub(crate) fn read(bytes: &[u8]) -> Result<Edit, StoreError> {
    let mut packed = Unpacker::new(bytes);
    let by = packed.text()?;
    let (before, after) = (content(&mut packed)?, content(&mut packed)?);
    let changes = packed.list(|packed| {
        let number = packed.number()?;
        let kind = ChangeKind::ALL.into_iter().find(|kind| code(*kind) == number);
        Ok(Change { kind: kind.ok_or_else(unreadable)?, place: packed.text()? })
    })?;
    let more = packed.number()?;
    let edit = Edit { by, before, after, changes, more };
    if packed.is_empty() { Ok(edit) } else { Err(unreadable()) }
}

fn content(packed: &mut Unpacker<'_>) -> Result<Content, StoreError> {
    Ok(Content { bytes: packed.number()?, hash: packed.bytes()? })
}

const fn code(kind: ChangeKind) -> u64 {
    match kind {
        ChangeKind::Added => 1,
        ChangeKind::Changed => 2,
        ChangeKind::Removed => 3,
    }
}
