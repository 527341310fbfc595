//! One attempt: a place, the interceptors, the wire, the answer, the validators.
//!
//! Whatever fails in between takes one way: context, judgement, error interceptors.
//! Never: repeat anything, wait longer than the attempt's time.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use resilience::Sleeper;

use super::body::Body;
use super::context::Context;
use super::error::{HttpError, HttpErrorKind as Kind};
use super::job::Job;
use super::payload::{Expected, validate};
use super::response::Response;
use super::within::within;
use crate::errors::TimedOut;

/// Bytes of memory for a body before the first of it has come.
const ROOM_AT_ONCE: usize = 64 << 10;

/// An answer that was taken: as received, and as the caller wants it.
pub(super) struct Taken<T> {
    pub(super) raw: Response<Bytes>,
    pub(super) decoded: Response<T>,
}

impl Job {
    /// Makes one attempt.
    pub(super) async fn attempt<T: Send + Sync>(
        &mut self,
        expected: &Expected<T>,
    ) -> Result<Taken<T>, HttpError> {
        self.attempts = self.attempts.saturating_add(1);
        let context = self.context.at_attempt(self.attempts);
        let (limit, sent) = (self.attempt_timeout, self.sent);
        let timeout = pin!(self.sleeper.sleep(limit));
        let result = within(timeout, self.dispatch(&context, expected)).await;
        let mut error = match result {
            Some(Ok(taken)) => return Ok(taken),
            Some(Err(error)) => error,
            // The line of the bulkhead or an interceptor may have used the time up.
            None => HttpError::new(Kind::AttemptTimeout, context.clone(), TimedOut::new(limit))
                .before_sending(self.sent == sent),
        };
        for interceptor in &self.interceptors {
            error = interceptor.error(self.judged(error), &context).await;
        }
        Err(self.judged(error))
    }

    async fn dispatch<T: Send + Sync>(
        &mut self,
        context: &Context,
        expected: &Expected<T>,
    ) -> Result<Taken<T>, HttpError> {
        let bulkhead = self.settings.bulkhead.clone();
        let _place = match &bulkhead {
            Some(bulkhead) => Some(
                bulkhead
                    .acquire()
                    .await
                    .map_err(|full| HttpError::new(Kind::BulkheadFull, context.clone(), full))?,
            ),
            None => None,
        };
        let mut request = self.request();
        for interceptor in &self.interceptors {
            let flow = interceptor.request(&mut request, context).await;
            flow.map_err(|error| {
                HttpError::wrap(Kind::Interceptor, context, error).before_sending(true)
            })?;
        }
        self.settings.observers.tell(|observer| observer.on_start(context));
        let mut raw = self.exchange(request, context).await?;
        for interceptor in &self.interceptors {
            let flow = interceptor.response(&mut raw).await;
            flow.map_err(|error| HttpError::wrap(Kind::Interceptor, context, error))?;
        }
        self.take(raw, context, expected).await
    }

    /// The request over the wire and its answer back, with the whole body.
    async fn exchange(
        &mut self,
        request: Request<Body>,
        context: &Context,
    ) -> Result<Response<Bytes>, HttpError> {
        self.sent = self.sent.saturating_add(1);
        let failed = |error| HttpError::wrap(Kind::Transport, context, error);
        let response = self.settings.transport.send(request).await.map_err(failed)?;
        let (parts, body) = response.into_parts();
        let whole = |body| Response::new(parts.status, parts.headers, body, context.clone());
        if !parts.status.is_success() {
            // What cannot be read of it changes nothing about the status.
            let (body, _) = read(body, self.settings.drain_bytes_max).await;
            let response = whole(body);
            return Err(HttpError::of(Kind::Status, context.clone(), None).with_response(response));
        }
        let (body, end) = read(body, self.settings.response_bytes_max).await;
        match end {
            End::Whole => Ok(whole(body)),
            End::Broken(error) => Err(failed(error)),
            End::TooLarge => {
                let rule = "the answer's body is larger than allowed";
                Err(HttpError::new(Kind::BodyTooLarge, context.clone(), rule))
            }
        }
    }

    /// The answer, decoded and validated.
    async fn take<T: Send + Sync>(
        &self,
        raw: Response<Bytes>,
        context: &Context,
        expected: &Expected<T>,
    ) -> Result<Taken<T>, HttpError> {
        let fail =
            |kind: Kind, error| HttpError::wrap(kind, context, error).with_response(raw.clone());
        let body = (expected.decode)(raw.body()).map_err(|error| fail(Kind::Decode, error))?;
        let decoded = raw.clone().map(|_| body);
        let verdict = match validate(&expected.raw, &raw).await {
            Ok(()) => validate(&expected.decoded, &decoded).await,
            refused => refused,
        };
        verdict.map_err(|error| fail(Kind::Validation, error))?;
        for interceptor in &self.interceptors {
            let flow = interceptor.validated(&raw).await;
            flow.map_err(|error| HttpError::wrap(Kind::Interceptor, context, error))?;
        }
        Ok(Taken { raw, decoded })
    }
}

/// How the reading of a body ended.
enum End {
    Whole,
    TooLarge,
    Broken(crate::errors::BoxError),
}

/// Reads up to `bytes_max`.
async fn read(mut body: Body, bytes_max: usize) -> (Bytes, End) {
    // What is announced need not come: memory is taken for a part of it at once, and then as it
    // does.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut read = BytesMut::with_capacity(announced.min(bytes_max).min(ROOM_AT_ONCE));
    let end = loop {
        match body.frame().await {
            None => break End::Whole,
            Some(Err(error)) => break End::Broken(error),
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = bytes_max.saturating_sub(read.len());
                read.extend_from_slice(data.get(..room).unwrap_or(&data));
                if data.len() > room {
                    break End::TooLarge;
                }
            }
        }
    };
    (read.freeze(), end)
}
