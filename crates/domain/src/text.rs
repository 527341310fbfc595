//! Rules for the short texts that callers choose: uids, names, channels, metadata.
//!
//! In: the name of the field and its text. Out: nothing, or the rule it breaks.
//! Never: change a text; what passes is kept as it came.

use crate::error::Invalid;
use crate::ids::Kind;
use crate::limits::{
    CHANNEL_CHARS_MAX, DESCRIPTION_BYTES_MAX, EVENT_TYPE_CHARS_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    METADATA_BYTES_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_PER_MESSAGE_MAX, UID_CHARS_MAX,
};

/// A caller's own id: `^[a-zA-Z0-9\-_.]+$`, 1 to 256 characters, neither `.` nor `..`, not to be
/// taken for one of ours.
///
/// `kind` is what it names; a text that begins with that kind's prefix could mean either in a path.
pub fn uid(field: &str, text: &str, kind: Option<Kind>) -> Result<(), Invalid> {
    path_token(field, text, UID_CHARS_MAX)?;
    match kind.map(Kind::prefix) {
        Some(prefix) if text.starts_with(prefix) => Err(Invalid::new(
            field,
            format!("must not begin with `{prefix}`, which marks ids of the server"),
        )),
        _ => Ok(()),
    }
}

/// What stands in paths where the id of a message may stand, and means something else.
const NOT_EVENT_IDS: [&str; 2] = ["expunge-all-contents", "precheck"];

/// The caller's own id of a message: a [`uid`] that does not look like a message id, and is no word
/// of a path.
pub fn event_id(field: &str, text: &str) -> Result<(), Invalid> {
    uid(field, text, Some(Kind::Message))?;
    if NOT_EVENT_IDS.contains(&text) {
        let rule = format!("must not be `{text}`, which means something else in a path");
        return Err(Invalid::new(field, rule));
    }
    Ok(())
}

/// The name of an event type.
pub fn event_type_name(field: &str, text: &str) -> Result<(), Invalid> {
    path_token(field, text, EVENT_TYPE_CHARS_MAX)
}

/// One channel.
pub fn channel(field: &str, text: &str) -> Result<(), Invalid> {
    token(field, text, CHANNEL_CHARS_MAX)
}

/// A list of channels: 1 to `most`.
pub fn channels(field: &str, list: &[String], most: usize) -> Result<(), Invalid> {
    if list.is_empty() || list.len() > most {
        return Err(Invalid::new(field, format!("must hold 1 to {most} channels")));
    }
    for (at, text) in list.iter().enumerate() {
        channel(&format!("[{at}]"), text).map_err(|fault| fault.within(field))?;
    }
    Ok(())
}

/// The tags of a message: at most [`TAGS_PER_MESSAGE_MAX`], each a text of 1 character or more.
pub fn tags(field: &str, list: &[String]) -> Result<(), Invalid> {
    if list.len() > TAGS_PER_MESSAGE_MAX {
        return Err(Invalid::new(field, format!("must hold at most {TAGS_PER_MESSAGE_MAX} tags")));
    }
    for (at, text) in list.iter().enumerate() {
        tag(&format!("[{at}]"), text).map_err(|fault| fault.within(field))?;
    }
    Ok(())
}

/// One tag.
pub fn tag(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || text.chars().count() > TAG_CHARS_MAX {
        return Err(Invalid::new(field, format!("must be 1 to {TAG_CHARS_MAX} characters")));
    }
    plain(field, text)
}

/// A name for people: 1 character or more, none of U+0000 to U+0008.
pub fn name(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(field, "must not be empty"));
    }
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(Invalid::new(field, format!("must be at most {NAME_CHARS_MAX} characters")));
    }
    plain(field, text)
}

/// A longer text for people, which may be empty.
pub fn description(field: &str, text: &str) -> Result<(), Invalid> {
    if text.len() > DESCRIPTION_BYTES_MAX {
        return Err(Invalid::new(field, format!("must be at most {DESCRIPTION_BYTES_MAX} bytes")));
    }
    plain(field, text)
}

/// Free text without U+0000 to U+0008: a store may refuse the first and people see none of them.
pub fn plain(field: &str, text: &str) -> Result<(), Invalid> {
    if text.bytes().any(|byte| byte <= 0x08) {
        return Err(Invalid::new(
            field,
            "must not contain the control characters U+0000 to U+0008",
        ));
    }
    Ok(())
}

/// The size of metadata as JSON text; its shape is checked where it is read.
pub fn metadata(field: &str, json: &str) -> Result<(), Invalid> {
    if json.len() > METADATA_BYTES_MAX {
        let rule = format!("must be at most {METADATA_BYTES_MAX} bytes as JSON");
        return Err(Invalid::new(field, rule));
    }
    Ok(())
}

/// The `idempotency-key` of a post: visible ASCII without spaces, at most 256 bytes.
pub fn idempotency_key(field: &str, text: &str) -> Result<(), Invalid> {
    let fits = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&text.len());
    if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let rule = format!(
            "must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters without spaces"
        );
        return Err(Invalid::new(field, rule));
    }
    Ok(())
}

/// A token that stands in paths: clients take `.` and `..` there for steps and resolve them.
fn path_token(field: &str, text: &str, chars_max: usize) -> Result<(), Invalid> {
    if matches!(text, "." | "..") {
        return Err(Invalid::new(field, "must not be `.` or `..`, which no path can name"));
    }
    token(field, text, chars_max)
}

fn token(field: &str, text: &str, chars_max: usize) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(field, "must not be empty"));
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !text.bytes().all(known) {
        return Err(Invalid::new(field, "may hold only letters, digits, `-`, `_` and `.`"));
    }
    if text.len() > chars_max {
        return Err(Invalid::new(field, format!("must be at most {chars_max} characters")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PublicId;
    use crate::limits::CHANNELS_PER_MESSAGE_MAX;

    #[test]
    fn uids_follow_the_wire_contract() {
        for good in ["a", "A-1_b.c", "ep_1", "...", "a..b", &"x".repeat(256)] {
            assert_eq!(uid("uid", good, Some(Kind::Application)), Ok(()), "{good}");
        }
        let long = "x".repeat(257);
        for bad in ["", "a b", "a/b", ".", "..", "é", "a\n", "app_1", "app_", &long] {
            let fault = uid("uid", bad, Some(Kind::Application)).unwrap_err();
            assert_eq!(fault.loc, ["body", "uid"], "{bad}");
        }
        assert_eq!(uid("uid", "app_1", None), Ok(()));
        assert!(event_id("eventId", "..").is_err() && event_type_name("name", ".").is_err());
    }

    #[test]
    fn tags_are_few_free_texts() {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        for good in [&[][..], &["a b, ü/1"], &["1", "2", "3", "4", "5"], &[&*"é".repeat(256)]] {
            assert_eq!(tags("tags", &list(good)), Ok(()), "{good:?}");
        }
        let long = "x".repeat(257);
        for bad in [&["1", "2", "3", "4", "5", "6"][..], &[""], &["a\0"], &[&*long]] {
            assert_eq!(tags("tags", &list(bad)).unwrap_err().loc[1], "tags", "{bad:?}");
        }
    }

    #[test]
    fn sg_13_ids_in_signed_text_hold_no_full_stop() {
        let long = "x".repeat(1_000);
        let bad =
            ["msg_1.1700000000", "msg_", "a b", "a\nb", "a,b", "a\u{301}", "\u{0}", "", &long];
        for text in bad {
            assert!(event_id("eventId", text).is_err(), "{text:?}");
        }
        // A full stop is fine in an event id: it is never signed, the server's own id is.
        assert_eq!(event_id("eventId", "order.1700000000"), Ok(()));
        for fill in [0, 0x5A, 0xFF] {
            let text = PublicId::new(u64::from(fill), [fill; 12]).text(Kind::Message);
            assert!(text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn db_01_nul_in_identifiers_is_refused() {
        for text in ["\0", "a\0b", "a\u{8}"] {
            assert!(uid("uid", text, None).is_err());
            assert!(event_id("eventId", text).is_err());
            assert!(event_type_name("eventType", text).is_err());
            assert!(channel("channel", text).is_err());
            assert!(name("name", text).is_err());
            assert!(description("description", text).is_err());
            assert!(idempotency_key("idempotency-key", text).is_err());
        }
    }

    #[test]
    fn names_are_for_people() {
        assert_eq!(name("name", "Škoda\tžluťoučký 🐎\n"), Ok(()));
        assert!(name("name", "").is_err());
        assert_eq!(name("name", &"é".repeat(NAME_CHARS_MAX)), Ok(()));
        assert!(name("name", &"é".repeat(NAME_CHARS_MAX + 1)).is_err());
        assert_eq!(description("description", ""), Ok(()));
        assert!(description("description", &"x".repeat(DESCRIPTION_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn lists_name_the_entry_at_fault() {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect::<Vec<String>>();
        let fault = channels("channels", &list(&["a", "b c"]), 5).unwrap_err();
        assert_eq!(fault.loc, ["body", "channels", "[1]"]);
        assert!(channels("channels", &[], 5).is_err());
        let five = list(&["a", "b", "c", "d", "e"]);
        assert_eq!(channels("channels", &five, CHANNELS_PER_MESSAGE_MAX), Ok(()));
        assert!(channels("channels", &five, CHANNELS_PER_MESSAGE_MAX - 1).is_err());
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(metadata("metadata", &"x".repeat(METADATA_BYTES_MAX)), Ok(()));
        assert!(metadata("metadata", &"x".repeat(METADATA_BYTES_MAX + 1)).is_err());
        let key = |text: &str| idempotency_key("idempotency-key", text);
        assert_eq!((key("auto_7f3b{}:~"), key(&"k".repeat(256))), (Ok(()), Ok(())));
        for bad in ["", "a b", " ", "a\tb", "a\u{7f}", "é", &"k".repeat(257)] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
