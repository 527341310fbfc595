//! A message as posted, read in one pass.
//!
//! In: a body. Out: what the engine accepts, the payload as the very bytes that came. Good bodies
//! are read once; one that is refused is read again, field by field, to say what is wrong with it.
//! Never: turn the payload into values; key order, numbers, escapes, doubles and lone surrogates
//! stay as they are.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use domain::error::Invalid;
use domain::limits::{
    CHANNELS_PER_MESSAGE_MAX, DELIVER_AT_LATE_MAX, DELIVER_AT_MAX, RETENTION_DAYS_MAX,
    RETENTION_DAYS_MIN, RETENTION_HOURS_MAX, RETENTION_HOURS_MIN,
};
use domain::message::{ContentType, MessageSpec};
use domain::{payload, text};
use resilience::Timestamp;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::http::fields::{
    Fields, checked, text as read_text, texts, time, time_of, whole, whole_of_float,
};
use crate::http::problem::Problem;

/// A message that was read.
pub(super) struct MessageIn<'a> {
    /// What is accepted.
    pub(super) spec: MessageSpec,
    /// The payload as JSON, when it is what is sent.
    pub(super) payload: Option<&'a RawValue>,
    /// The application to create if it is not there yet.
    pub(super) application: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    event_type: String,
    #[serde(borrow, alias = "data")]
    payload: &'a RawValue,
    event_id: Option<String>,
    channels: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    deliver_at: Option<String>,
    payload_retention_period: Option<Whole>,
    payload_retention_hours: Option<Whole>,
    #[serde(borrow)]
    transformations_params: Option<&'a RawValue>,
    #[serde(borrow)]
    application: Option<&'a RawValue>,
}

/// A whole number as [`whole`] reads it.
struct Whole(u16);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                let fits = u16::try_from(number).map(Whole);
                fits.map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
                match whole_of_float(number) {
                    Some(whole) => self.visit_u64(whole),
                    None => Err(E::invalid_value(Unexpected::Float(number), &self)),
                }
            }
        }

        deserializer.deserialize_any(Number)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    raw_payload: Option<String>,
    #[serde(borrow)]
    headers: Option<BTreeMap<String, &'a RawValue>>,
}

/// Reads a body whose payload may have so many bytes.
pub(super) fn read(body: &[u8], payload_bytes_max: usize) -> Result<MessageIn<'_>, Problem> {
    // A list of the right values would pass for an object.
    if !matches!(body.trim_ascii_start().first(), Some(b'{')) {
        return Err(explain(body, "must be a JSON object"));
    }
    let shape: Shape<'_> = match serde_json::from_slice(body) {
        Ok(shape) => shape,
        Err(fault) => return Err(explain(body, &fault.to_string())),
    };
    if !shape.payload.get().starts_with('{') {
        return Err(Invalid::new("payload", "must be an object").into());
    }
    let retention_hours =
        retention_hours(shape.payload_retention_period, shape.payload_retention_hours)?;
    let deliver_at = shape.deliver_at.as_deref().map(time_of).transpose();
    let deliver_at = deliver_at.map_err(|rule| Invalid::new("deliverAt", rule))?;
    let params = params(shape.transformations_params).map_err(|said| explain(body, &said))?;
    let (bytes, is_json) = match &params.raw_payload {
        Some(raw) => (raw.as_bytes(), false),
        None => (shape.payload.get().as_bytes(), true),
    };
    if bytes.len() > payload_bytes_max {
        return Err(Problem::payload_too_large(payload_bytes_max));
    }
    readable(bytes, is_json)?;
    if shape.channels.as_ref().is_some_and(Vec::is_empty) {
        let rule = format!("must hold 1 to {CHANNELS_PER_MESSAGE_MAX} channels, or be null");
        return Err(Invalid::new("channels", rule).into());
    }
    let spec = MessageSpec {
        event_type: shape.event_type,
        event_id: shape.event_id,
        channels: shape.channels.unwrap_or_default(),
        tags: shape.tags.unwrap_or_default(),
        // A copy of its own: what is kept must not hold on to the buffer of a connection.
        payload: Bytes::copy_from_slice(bytes),
        content_type: content_type(&params)?,
        retention_hours,
        deliver_at,
        trace: None,
    };
    check(&spec)?;
    let payload = is_json.then_some(shape.payload);
    Ok(MessageIn { spec, payload, application: shape.application })
}

/// Whether readers of JSON can read what is shown of a payload: one that is sent in place of it is
/// shown as JSON if it is an object.
fn readable(bytes: &[u8], is_json: bool) -> Result<(), Invalid> {
    if is_json {
        return payload::check("payload", bytes);
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Ok(());
    }
    match payload::check("rawPayload", bytes) {
        Err(fault) if serde_json::from_slice::<&RawValue>(bytes).is_ok() => {
            Err(fault.within("transformationsParams"))
        }
        _ => Ok(()),
    }
}

fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    text::event_type_name("eventType", &spec.event_type)?;
    spec.event_id.as_ref().map_or(Ok(()), |id| text::event_id("eventId", id))?;
    if !spec.channels.is_empty() {
        text::channels("channels", &spec.channels, CHANNELS_PER_MESSAGE_MAX)?;
    }
    text::tags("tags", &spec.tags)
}

/// How long the payload is kept, named in days or in hours.
fn retention_hours(days: Option<Whole>, hours: Option<Whole>) -> Result<Option<u16>, Invalid> {
    let day_range = u16::from(RETENTION_DAYS_MIN)..=u16::from(RETENTION_DAYS_MAX);
    let name = "payloadRetentionHours";
    match (days, hours) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(Invalid::new(name, "must not be given beside payloadRetentionPeriod"))
        }
        (Some(Whole(days)), None) if !day_range.contains(&days) => {
            let rule = format!("must be from {RETENTION_DAYS_MIN} to {RETENTION_DAYS_MAX} days");
            Err(Invalid::new("payloadRetentionPeriod", rule))
        }
        (Some(Whole(days)), None) => Ok(Some(days * 24)),
        (None, Some(Whole(hours)))
            if !(RETENTION_HOURS_MIN..=RETENTION_HOURS_MAX).contains(&hours) =>
        {
            let rule = format!("must be from {RETENTION_HOURS_MIN} to {RETENTION_HOURS_MAX} hours");
            Err(Invalid::new(name, rule))
        }
        (None, Some(Whole(hours))) => Ok(Some(hours)),
    }
}

/// Which rule a time of delivery breaks that the store would not take shortly before `now`.
pub(super) fn deliver_at_rule(spec: &MessageSpec, now: Timestamp) -> String {
    if spec.deliver_at.is_some_and(|named| named < now.minus(DELIVER_AT_LATE_MAX)) {
        let late = DELIVER_AT_LATE_MAX.as_secs();
        return format!("must not be in the past by more than {late} seconds");
    }
    let most = DELIVER_AT_MAX.as_secs() / 3_600;
    match spec.retention_hours {
        Some(kept) if u64::from(kept) < most => {
            let hours = if kept == 1 { "1 hour".to_owned() } else { format!("{kept} hours") };
            format!("must be before the payload goes, which is {hours} from now")
        }
        _ => format!("must be at most {most} hours from now"),
    }
}

fn params(raw: Option<&RawValue>) -> Result<Params<'_>, String> {
    let Some(raw) = raw else { return Ok(Params::default()) };
    if !raw.get().starts_with('{') {
        return Err("must be an object".to_owned());
    }
    serde_json::from_str(raw.get()).map_err(|fault| fault.to_string())
}

/// JSON, unless the message names another media type in `transformationsParams.headers`.
fn content_type(params: &Params<'_>) -> Result<ContentType, Invalid> {
    let named =
        params.headers.iter().flatten().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let Some((name, value)) = named else { return Ok(ContentType::Json) };
    let refuse = |rule: &str| {
        Invalid::new(name.clone(), rule).within("headers").within("transformationsParams")
    };
    let text: String = serde_json::from_str(value.get()).map_err(|_| refuse("must be a text"))?;
    let is_visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if !is_visible || text.trim() != text || text.is_empty() || text.len() > 256 {
        return Err(refuse("must be a media type of 1 to 256 visible ASCII characters"));
    }
    Ok(match text.as_str() {
        "application/json" => ContentType::Json,
        _ => ContentType::Other(text),
    })
}

/// Reads a refused body field by field and names what is wrong, or repeats what the quick reader
/// said.
fn explain(body: &[u8], said: &str) -> Problem {
    let mut fields = match Fields::parse(body) {
        Ok(fields) => fields,
        Err(problem) => return problem,
    };
    fields.firm("eventType", None, None, checked(text::event_type_name));
    let payload = if fields.names("data") { "data" } else { "payload" };
    if fields.names("data") && fields.names("payload") {
        fields.fail("data", "must not be given beside payload, which is the same field");
    }
    // Not turned into values: it may hold what they cannot.
    fields.firm_raw(payload, None, None, |name, raw| {
        let is_object = raw.get().starts_with('{');
        is_object.then_some(()).ok_or_else(|| Invalid::new(name, "must be an object"))
    });
    fields.nullable(&["eventId"], None, checked(text::event_id));
    fields.nullable(&["channels"], None, texts);
    fields.nullable(&["tags"], None, texts);
    fields.nullable(&["deliverAt"], None, time);
    let days = u64::from(RETENTION_DAYS_MIN)..=u64::from(RETENTION_DAYS_MAX);
    fields.nullable(&["payloadRetentionPeriod"], None, whole::<u8>(days));
    let hours = u64::from(RETENTION_HOURS_MIN)..=u64::from(RETENTION_HOURS_MAX);
    fields.nullable(&["payloadRetentionHours"], None, whole::<u16>(hours));
    if let Some(mut params) = fields.object("transformationsParams") {
        params.nullable(&["rawPayload"], None, read_text);
        if let Some(headers) = params.object("headers") {
            params.absorb(headers);
        }
        fields.absorb(params);
    }
    // Read once it is needed; that it is given once is asked now.
    fields.nullable_raw(&["application"], None, |_, _| Ok(()));
    match fields.finish() {
        Err(problem) => problem,
        Ok(()) => Problem::field(&["body"], said, Invalid::KIND),
    }
}

#[cfg(test)]
mod tests;
