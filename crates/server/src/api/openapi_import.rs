//! Event types from the webhooks of an OpenAPI document: new ones are made, known ones replaced.
//!
//! One after the other, each a write of its own: what an interrupted import left out, the same
//! import makes good. A type that is already as the document has it is left alone.
//! Never: change a type's feature flag, which no document knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::error::Invalid;
use domain::event_type::EventType;
use domain::ids::PublicId;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use store::directory::Directory;
use store::page::{Direction, PageOf};

use super::inputs::event_type::EventTypeImportOpenApiIn;
use super::once::once;
use super::openapi::{Webhook, webhooks};
use super::operation::{Operation, Token};
use super::schemas;
use super::shapes::Object;
use super::views::stored_json;
use crate::http::auth::Auth;
use crate::http::extract::Received;
use crate::http::fields::{Fields, flag, text};
use crate::http::idempotency::{Done, Made};
use crate::http::problem::Problem;
use crate::schema_check::SchemaCheck;
use crate::state::Shared;

/// Event types read at once.
const PAGE: usize = 250;

/// Parts of a YAML text that its aliases may stand for, in all.
const YAML_REPEATED_MAX: usize = 20_000;

/// What came of an import.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventTypeImportOpenApiOut")]
struct ImportOut {
    data: ImportData,
}

/// Names, and types of a dry run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventTypeImportOpenApiOutData")]
struct ImportData {
    /// What was made, replaced or archived.
    modified: Vec<String>,
    /// What a dry run would make or replace.
    to_modify: Option<Vec<ImportedOut>>,
    /// What is in no webhook, and was archived or would be.
    archived: Vec<String>,
}

/// An event type as a document has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventTypeFromOpenApi")]
#[serde(rename_all = "camelCase")]
struct ImportedOut {
    name: String,
    description: String,
    #[schemars(with = "Option<Object>")]
    schemas: Option<Box<RawValue>>,
    deprecated: bool,
}

/// What is asked for.
struct Import {
    types: Vec<(Webhook, Option<String>)>,
    dry_run: bool,
    replace_all: bool,
}

pub(super) const IMPORT: Operation = Operation::new(
    "v1.event-type.import-openapi",
    "Makes event types from the webhooks of an OpenAPI document.",
)
.token(Token::Org)
.takes::<EventTypeImportOpenApiIn>()
.once()
.gives::<ImportOut>(200);

/// `POST /event-type/import/openapi`
pub(super) async fn import(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    received: Received,
) -> Result<Response, Problem> {
    caller.org_only()?;
    let import = read(&received.body)?;
    let (peyk, org) = (Arc::clone(&shared), caller.org);
    let work = async move |_| {
        let data = carry_out(&peyk, org, import).await?;
        Ok(Done::json(StatusCode::OK, &ImportOut { data }, Made::Nothing))
    };
    once(&shared, (&caller, &received), &[], work).await
}

fn read(body: &[u8]) -> Result<Import, Problem> {
    let mut fields = Fields::parse(body)?;
    let spec = fields.nullable(&["spec"], None, |_, value| Ok(value.clone()));
    let raw = fields.nullable(&["specRaw"], None, |name, value| {
        parsed(&text(name, value)?).map_err(|rule| Invalid::new(name, rule))
    });
    let dry_run = fields.firm("dryRun", None, Some(false), flag).unwrap_or_default();
    let replace_all = fields.firm("replaceAll", None, Some(false), flag).unwrap_or_default();
    fields.finish()?;
    let (field, spec) = match (spec, raw) {
        (Some(spec), None) => ("spec", spec),
        (None, Some(spec)) => ("specRaw", spec),
        _ => {
            let detail = "Give either `spec` or `specRaw`, and not both";
            return Err(Problem::bad_request("generic_error", detail));
        }
    };
    let types = webhooks(field, &spec)?.into_iter();
    let types = types.map(|webhook| checked(webhook).map_err(|fault| fault.within(field)));
    let types = types.collect::<Result<_, _>>()?;
    Ok(Import { types, dry_run, replace_all })
}

/// Reads JSON, or else YAML.
fn parsed(text: &str) -> Result<Value, String> {
    let json = match serde_json::from_str(text) {
        Ok(read) => return Ok(read),
        Err(fault) => fault,
    };
    let aliases = serde_saphyr::alias_limits! { max_total_replayed_events: YAML_REPEATED_MAX };
    let options = serde_saphyr::options! { alias_limits: aliases };
    let yaml = match serde_saphyr::from_str_with_options(text, options) {
        Ok(read) => return Ok(read),
        Err(fault) => fault,
    };
    if text.trim_start().starts_with(['{', '[']) {
        let (line, column) = (json.line(), json.column());
        return Err(format!(
            "is neither JSON nor YAML: as JSON it breaks off at line {line}, column {column}"
        ));
    }
    Err(match yaml.location() {
        Some(at) => format!(
            "is neither JSON nor YAML: as YAML it cannot be read on from line {}, column {}",
            at.line(),
            at.column()
        ),
        None => "is neither JSON nor YAML".to_owned(),
    })
}

/// With its schemas as they are stored.
fn checked(webhook: Webhook) -> Result<(Webhook, Option<String>), Invalid> {
    let Some(schemas) = &webhook.schemas else { return Ok((webhook, None)) };
    let raw = RawValue::from_string(schemas.to_string()).unwrap_or_default();
    let kept = schemas::read("schemas", &raw)
        .and_then(|kept| SchemaCheck::usable("schemas", &kept).map(|()| kept));
    let kept = kept.map_err(|fault| fault.within(&webhook.name))?;
    Ok((webhook, Some(kept)))
}

async fn carry_out(shared: &Shared, org: PublicId, import: Import) -> Result<ImportData, Problem> {
    let directory = &*shared.engine.stores().directory;
    let _edit = shared.edit().await?;
    let mut data = ImportData { modified: Vec::new(), to_modify: None, archived: Vec::new() };
    let mut planned = Vec::new();
    let names: BTreeSet<_> = import.types.iter().map(|(one, _)| one.name.clone()).collect();
    for (webhook, schemas) in import.types {
        let old = directory.event_type(org, webhook.name.clone()).await?;
        let made = renewed(shared, old.as_ref(), webhook, schemas);
        if old.as_ref().is_none_or(|old| !is_same(old, &made)) {
            planned.push((old.is_some(), made));
        }
    }
    if import.replace_all {
        let others = all(directory, org).await?;
        for old in others.into_iter().filter(|old| !names.contains(&old.name)) {
            data.archived.push(old.name.clone());
            if !import.dry_run {
                let archived = EventType { archived: true, updated_at: shared.now(), ..old };
                write(shared, true, (org, archived)).await?;
            }
        }
    }
    if import.dry_run {
        data.to_modify = Some(planned.into_iter().map(|(_, made)| shown(made)).collect());
        return Ok(data);
    }
    for (known, made) in planned {
        data.modified.push(made.name.clone());
        write(shared, known, (org, made)).await?;
    }
    data.modified.extend(data.archived.iter().cloned());
    Ok(data)
}

/// Writes one that is known already, or a new one.
async fn write(
    shared: &Shared,
    known: bool,
    (org, made): (PublicId, EventType),
) -> Result<(), Problem> {
    let directory = &shared.engine.stores().directory;
    let name = made.name.clone();
    let write = match known {
        true => directory.update_event_type(org, made),
        false => directory.create_event_type(org, made),
    };
    shared.schemas.write((org, name), write).await?;
    Ok(())
}

fn renewed(
    shared: &Shared,
    old: Option<&EventType>,
    webhook: Webhook,
    schemas: Option<String>,
) -> EventType {
    let now = shared.now();
    EventType {
        name: webhook.name,
        description: webhook.description,
        archived: false,
        deprecated: webhook.deprecated,
        schemas,
        feature_flag: old.and_then(|old| old.feature_flag.clone()),
        created_at: old.map_or(now, |old| old.created_at),
        updated_at: now,
    }
}

fn is_same(old: &EventType, made: &EventType) -> bool {
    EventType { updated_at: old.updated_at, ..made.clone() } == *old
}

fn shown(made: EventType) -> ImportedOut {
    ImportedOut {
        name: made.name,
        description: made.description,
        schemas: made.schemas.map(|json| stored_json(&json)),
        deprecated: made.deprecated,
    }
}

/// All that are not archived.
async fn all(directory: &dyn Directory, org: PublicId) -> Result<Vec<EventType>, Problem> {
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction: Direction::Ascending, limit: PAGE };
        let rows = directory.event_types(org, false, page).await?;
        let is_last = rows.len() < PAGE;
        beyond = rows.last().map(|row| row.name.clone());
        found.extend(rows);
        if is_last {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_stand_for_so_much_and_no_more() {
        let doubled = |times: usize| {
            let lines = (1..=times).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1));
            format!("a0: &a0 [x]\n{}", lines.collect::<String>())
        };
        assert!(parsed(&doubled(8)).is_ok());
        assert!(parsed(&doubled(15)).is_err());
    }
}
