//! Payloads held against the JSON Schema of their event type, where `schema.validation` asks for
//! it.
//!
//! In: an event type and a payload. Out: nothing, or which rule the payload breaks and where. A
//! schema is compiled once and kept until its event type is written; this process is the only one
//! that writes them.
//! Never: read, lock or count anything while validation is off; never fetch what a schema names.

mod compiled;
mod unfold;
mod weigh;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::error::Invalid;
use domain::event_type::EventType;
use domain::ids::{Kind, PublicId};
use domain::message::MessageSpec;
use metrics::{Counter, counter};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::value::RawValue;
use store::directory::Directory;
use store::{Reply, StoreError};

use compiled::Compiled;

use crate::http::problem::Problem;

/// Event types whose schema is kept, about.
const TYPES: usize = 1_000;
/// Text of all schemas that are kept.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// What any entry counts for at least.
const ENTRY_BYTES: u64 = 256;
/// A payload up to this size is looked at where it was read, if its schema is not large either;
/// others are held up by more.
const BESIDE_BYTES: usize = 32 << 10;
/// The kind of a fault of a schema that was stored by an earlier version.
const UNUSABLE: &str = "schema_unusable";

/// What is done with a payload that breaks its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validation {
    /// Nobody looks.
    Off,
    /// It is accepted, logged and counted.
    Warn,
    /// It is refused.
    Enforce,
}

/// The schemas at hand.
pub(crate) struct SchemaCheck {
    mode: Validation,
    kept: Cache<Name, Arc<Kept>, Weight>,
    /// How many writes there were: what was read before one is not kept after it.
    writes: Mutex<u64>,
    warned: Counter,
    refused: Counter,
    unusable: Counter,
}

type Name = (PublicId, String);

/// The newest schema of an event type.
enum Kept {
    /// There is none, or no such type.
    None,
    /// It was stored by a version that did not look, and cannot be used; with the reason.
    Unusable(String),
    /// In use; with the length of its text.
    Compiled(Arc<Compiled>, u64),
}

#[derive(Clone)]
struct Weight;

impl Weighter<Name, Arc<Kept>> for Weight {
    fn weight(&self, name: &Name, kept: &Arc<Kept>) -> u64 {
        let text = if let Kept::Compiled(_, bytes) = **kept { bytes } else { 0 };
        ENTRY_BYTES + name.1.len() as u64 + text
    }
}

impl SchemaCheck {
    /// Nothing is known yet.
    pub(crate) fn new(mode: Validation) -> Self {
        let found = |result| counter!("peyk_schema_findings_total", "result" => result);
        Self {
            mode,
            kept: Cache::with_weighter(TYPES, TEXT_BYTES_MAX, Weight),
            writes: Mutex::new(0),
            warned: found("warned"),
            refused: found("refused"),
            unusable: found("unusable"),
        }
    }

    /// Whether schemas that are about to be stored can be used, all versions of them: also while
    /// nobody looks at payloads, for the setting may change.
    pub(crate) fn usable(name: &str, schemas: &str) -> Result<(), Invalid> {
        versions(schemas).into_iter().try_for_each(|(version, schema)| {
            let made = Compiled::new(&version, schema.get()).map(drop);
            made.map_err(|rule| Invalid::new(version, rule).within(name))
        })
    }

    /// Looks at the payload of a message, which is JSON.
    pub(crate) async fn check(
        &self,
        directory: &dyn Directory,
        org: PublicId,
        spec: &MessageSpec,
    ) -> Result<(), Problem> {
        if self.mode == Validation::Off {
            return Ok(());
        }
        let kept = self.kept(directory, (org, spec.event_type.clone())).await?;
        let compiled = match &*kept {
            Kept::None => return Ok(()),
            Kept::Unusable(reason) => {
                self.unusable.increment(1);
                return if self.mode == Validation::Enforce {
                    Err(unusable(reason))
                } else {
                    Ok(())
                };
            }
            Kept::Compiled(compiled, _) => Arc::clone(compiled),
        };
        let Err(fault) = looked_at(compiled, spec.payload.clone()).await? else { return Ok(()) };
        if self.mode == Validation::Enforce {
            self.refused.increment(1);
            return Err(fault.fault.into());
        }
        self.warned.increment(1);
        // What the payload holds has no place in a log, nor have names that only it has.
        let (org, event_type) = (org.text(Kind::Organisation), &spec.event_type);
        tracing::warn!(
            org,
            event_type,
            rule = fault.rule,
            at = fault.at,
            "a payload breaks the schema of its event type"
        );
        Ok(())
    }

    /// Writes an event type and forgets what was compiled of it, whether or not somebody still
    /// waits for the answer.
    pub(crate) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        (org, name): (PublicId, String),
        write: Reply<'static, T>,
    ) -> Result<T, StoreError> {
        let check = Arc::clone(self);
        let written = tokio::spawn(async move {
            let answer = write.await;
            *check.writes() += 1;
            check.kept.remove(&(org, name));
            answer
        });
        written.await.unwrap_or(Err(StoreError::Overloaded))
    }

    /// Another node wrote event types.
    pub(crate) fn forget_all(&self) {
        let mut writes = self.writes();
        *writes += 1;
        self.kept.clear();
    }

    fn writes(&self) -> MutexGuard<'_, u64> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn kept(&self, directory: &dyn Directory, name: Name) -> Result<Arc<Kept>, Problem> {
        if let Some(kept) = self.kept.get(&name) {
            return Ok(kept);
        }
        let before = *self.writes();
        let found = directory.event_type(name.0, name.1.clone()).await?;
        let kept = tokio::task::spawn_blocking(move || Arc::new(newest(found)));
        let kept = kept.await.map_err(|_| Problem::overloaded())?;
        let writes = self.writes();
        if *writes == before {
            self.kept.insert(name, Arc::clone(&kept));
        }
        Ok(kept)
    }
}

/// What nobody can check is not let through as if somebody had.
fn unusable(reason: &str) -> Problem {
    let rule = format!("has a schema that cannot be used and must be replaced: {reason}");
    Invalid::new("eventType", rule).of_kind(UNUSABLE).into()
}

async fn looked_at(
    compiled: Arc<Compiled>,
    payload: Bytes,
) -> Result<Result<(), compiled::Broken>, Problem> {
    if payload.len() <= BESIDE_BYTES && compiled.is_quick(payload.len()) {
        return Ok(compiled.check(&payload));
    }
    let looked = tokio::task::spawn_blocking(move || compiled.check(&payload));
    looked.await.map_err(|_| Problem::overloaded())
}

/// Schemas by version, as they are stored.
fn versions(schemas: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(schemas).unwrap_or_default()
}

/// Compiles the newest version: the largest number, or without numbers the last text.
fn newest(event_type: Option<EventType>) -> Kept {
    let Some(EventType { name, schemas: Some(schemas), .. }) = event_type else {
        return Kept::None;
    };
    let by_age = |version: &String| (version.parse::<u64>().ok(), version.clone());
    let newest = versions(&schemas).into_iter().max_by_key(|(version, _)| by_age(version));
    let Some((version, schema)) = newest else { return Kept::None };
    match Compiled::new(&version, schema.get()) {
        Ok(compiled) => Kept::Compiled(Arc::new(compiled), schema.get().len() as u64),
        Err(rule) => {
            tracing::warn!(event_type = name, version, rule, "a stored schema cannot be used");
            Kept::Unusable(format!("version {version} {rule}"))
        }
    }
}

#[cfg(test)]
mod tests;
