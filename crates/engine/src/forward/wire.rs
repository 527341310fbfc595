//! What nodes say to each other: frames of a length in four bytes and a Protocol Buffers message.
//!
//! Fields are added under new numbers and never change, so that nodes of two versions understand
//! each other; a change that old nodes must not overlook is another protocol (`identity`).
//! Never: trust a frame; what does not read as a message is refused.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use domain::endpoint::Endpoint;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, PublicId};
use domain::limits::BODY_BYTES_MAX;
use domain::message::{ContentType, MessageSpec};
use domain::trace::{Given, SpanId, TraceId};
use prost::Message as _;
use resilience::Timestamp;
use store::inbox::NewMessage;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// Bytes of a frame: a request's body, and what is known of it besides.
const FRAME_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Frames over a connection.
pub(super) type Frames<S> = Framed<S, LengthDelimitedCodec>;

/// Reads and writes frames.
pub(super) fn frames<S: AsyncRead + AsyncWrite>(stream: S) -> Frames<S> {
    LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_framed(stream)
}

/// A message to commit.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Post {
    /// Which post of this connection it is; the answer has the same.
    #[prost(uint64, tag = "1")]
    pub(super) number: u64,
    #[prost(sfixed64, tag = "2")]
    pub(super) app: i64,
    #[prost(int64, tag = "3")]
    pub(super) app_version: i64,
    #[prost(sfixed64, repeated, tag = "4")]
    pub(super) endpoints: Vec<i64>,
    #[prost(bytes = "vec", tag = "5")]
    random: Vec<u8>,
    #[prost(bytes = "vec", tag = "6")]
    key_scope: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    key_body: Vec<u8>,
    #[prost(string, tag = "8")]
    event_type: String,
    #[prost(string, optional, tag = "9")]
    event_id: Option<String>,
    #[prost(string, repeated, tag = "10")]
    channels: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    tags: Vec<String>,
    #[prost(bytes = "bytes", tag = "12")]
    payload: Bytes,
    /// Unless it is JSON.
    #[prost(string, optional, tag = "13")]
    content_type: Option<String>,
    #[prost(uint32, optional, tag = "14")]
    retention_hours: Option<u32>,
    #[prost(sint64, optional, tag = "15")]
    deliver_at_us: Option<i64>,
    #[prost(message, optional, tag = "16")]
    trace: Option<Trace>,
    #[prost(bytes = "vec", optional, tag = "17")]
    edited_from: Option<Vec<u8>>,
}

/// What the caller of a message brought along.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Trace {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    parent: Vec<u8>,
    #[prost(uint32, tag = "3")]
    flags: u32,
    #[prost(string, tag = "4")]
    state: String,
}

/// What became of a post. The first one of a connection answers none: the other side is known.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Answer {
    #[prost(uint64, tag = "1")]
    pub(super) number: u64,
    /// It is committed. Without it nothing was.
    #[prost(message, optional, tag = "2")]
    pub(super) new: Option<New>,
}

/// A message that was committed.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct New {
    #[prost(fixed64, tag = "1")]
    pub(super) key: u64,
    #[prost(sint64, tag = "2")]
    pub(super) accepted_at_us: i64,
}

impl Post {
    /// Of this message. Without a key it is not forwarded.
    pub(super) fn of(number: u64, message: &NewMessage) -> Option<Self> {
        let (spec, key) = (&message.spec, message.key?);
        Some(Self {
            number,
            app: message.app.0,
            app_version: message.app_version,
            endpoints: message.targets.iter().map(|target| target.key.0).collect(),
            random: message.random.to_vec(),
            key_scope: key.scope.to_vec(),
            key_body: key.body.to_vec(),
            event_type: spec.event_type.clone(),
            event_id: spec.event_id.clone(),
            channels: spec.channels.clone(),
            tags: spec.tags.clone(),
            payload: spec.payload.clone(),
            content_type: match &spec.content_type {
                ContentType::Json => None,
                ContentType::Other(named) => Some(named.clone()),
            },
            retention_hours: spec.retention_hours.map(u32::from),
            deliver_at_us: spec.deliver_at.map(Timestamp::as_micros),
            trace: spec.trace.as_deref().map(Trace::of),
            edited_from: message.edited_from.map(|id| id.as_bytes().to_vec()),
        })
    }

    /// A frame.
    pub(super) fn encoded(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// From a frame; `None` if it is none.
    pub(super) fn read(frame: BytesMut) -> Option<Self> {
        Self::decode(frame.freeze()).ok()
    }

    /// The message, for endpoints that were found; `None` if it cannot be one.
    pub(super) fn message(self, targets: Vec<Arc<Endpoint>>) -> Option<NewMessage> {
        let content_type = self.content_type.map_or(ContentType::Json, ContentType::Other);
        let hours = if_there(self.retention_hours, |hours| hours.try_into().ok())?;
        let trace = if_there(self.trace, Trace::given)?;
        let edited = if_there(self.edited_from, |id| id.try_into().ok())?;
        Some(NewMessage {
            app: AppKey(self.app),
            app_version: self.app_version,
            spec: MessageSpec {
                event_type: self.event_type,
                event_id: self.event_id,
                channels: self.channels,
                tags: self.tags,
                // A piece of the frame would keep all of it, and what was read with it, in memory.
                payload: Bytes::copy_from_slice(&self.payload),
                content_type,
                retention_hours: hours,
                deliver_at: self.deliver_at_us.map(Timestamp::from_micros),
                trace: trace.map(Arc::new),
            },
            random: self.random.try_into().ok()?,
            targets,
            key: Some(IngestKey {
                scope: self.key_scope.try_into().ok()?,
                body: self.key_body.try_into().ok()?,
            }),
            edited_from: edited.map(PublicId::from_bytes),
        })
    }
}

impl Trace {
    fn of(given: &Given) -> Self {
        Self {
            id: given.trace.0.to_vec(),
            parent: given.parent.0.to_vec(),
            flags: given.flags.into(),
            state: given.state.clone(),
        }
    }

    fn given(self) -> Option<Given> {
        Some(Given {
            trace: TraceId(self.id.try_into().ok()?),
            parent: SpanId(self.parent.try_into().ok()?),
            flags: self.flags.try_into().ok()?,
            state: self.state,
        })
    }
}

/// What is left out, or reads; `None` if it is there and does not read.
fn if_there<T, U>(found: Option<T>, read: impl FnOnce(T) -> Option<U>) -> Option<Option<U>> {
    match found {
        None => Some(None),
        Some(found) => read(found).map(Some),
    }
}

impl Answer {
    /// A frame.
    pub(super) fn encoded(self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// From a frame; `None` if it is none.
    pub(super) fn read(frame: BytesMut) -> Option<Self> {
        Self::decode(frame).ok()
    }
}
