//! Applications: create, list, read, replace, patch, delete.
//!
//! PUT on an unknown id creates one, as the SDKs expect.
//! Never: let an application's token change or list applications.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::application::{Application, ApplicationSpec};
use domain::ids::{Kind, PublicId};
use domain::text;
use http::StatusCode;
use store::StoreError;
use store::directory::IdOrUid;
use store::page::Direction;
use store::recall::Once;

use super::inputs::application::ApplicationIn;
use super::inputs::query::{GetIfExists, OrderedPage};
use super::once::once;
use super::operation::{Operation, Token};
use super::own;
use super::shapes::Patch;
use super::views::application::ApplicationOut;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, metadata, whole};
use crate::http::idempotency::{Answer, Done, Made, Ticket};
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::tokens::Caller;
use crate::state::{Shared, random};

type Answered = Result<Response, Problem>;

pub(super) const LIST: Operation =
    Operation::new("v1.application.list", "Lists the applications of the organisation.")
        .token(Token::Org)
        .query::<OrderedPage>()
        .gives::<ListOut<ApplicationOut>>(200);

/// `GET /app`
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
) -> Answered {
    caller.org_only()?;
    let seal = shared.iterators.of("applications", caller.org, &[]);
    let paging = Paging::ordered(&query, Direction::Ascending, seal)?;
    let directory = &shared.engine.stores().directory;
    let is_row = async |id: String| {
        let which = own::id_or_uid(Kind::Application, &id);
        Ok(directory.app(caller.org, which).await?.is_some())
    };
    let page = paging.page(|text| PublicId::parse(Kind::Application, text), is_row).await?;
    let rows = directory.apps(caller.org, page).await?;
    let list = paging.frame(rows, |app| app.id.text(Kind::Application));
    let list = list.map(|app| ApplicationOut::from(&*app));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

pub(super) const CREATE: Operation =
    Operation::new("v1.application.create", "Creates an application: one customer of yours.")
        .token(Token::Org)
        .query::<GetIfExists>()
        .takes::<ApplicationIn>()
        .once()
        .gives::<ApplicationOut>(200)
        .gives::<ApplicationOut>(201)
        .or("conflict");

/// `POST /app`
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    query: Query,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let get_if_exists = query.flag("get_if_exists", false)?;
    let spec = spec_of(Fields::parse(&received.body)?, None)?;
    let (peyk, by) = (Arc::clone(&shared), Arc::clone(&caller));
    let work = async move |ticket: Ticket| {
        let done = |status, app: &Application| {
            Done::json(status, &ApplicationOut::from(app), Made::Application(app.key))
        };
        let once = ticket.tells(move |app: &Arc<Application>| Some(done(StatusCode::CREATED, app)));
        let (status, app) = match made(&peyk, &by, spec.clone(), once).await {
            Err(StoreError::Conflict(_)) if get_if_exists => {
                let which = IdOrUid::Uid(spec.uid.unwrap_or_default());
                let found = peyk.engine.stores().directory.app(by.org, which).await?;
                (StatusCode::OK, found.ok_or_else(own::missing)?.app)
            }
            made => (StatusCode::CREATED, made?),
        };
        Ok(done(status, &app))
    };
    once(&shared, (&caller, &received), &[], work).await
}

pub(super) const READ: Operation =
    Operation::new("v1.application.get", "Shows an application.").gives::<ApplicationOut>(200);

/// `GET /app/{app}`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
) -> Answered {
    let found = own::app(&shared, &caller, &app).await?;
    Ok(Answer::json(StatusCode::OK, &ApplicationOut::from(&*found.app)).into_response())
}

pub(super) const PUT: Operation =
    Operation::new("v1.application.update", "Replaces an application, or creates it.")
        .token(Token::Org)
        .takes::<ApplicationIn>()
        .gives::<ApplicationOut>(200)
        .gives::<ApplicationOut>(201)
        .or("conflict");

/// `PUT /app/{app}`
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    own::can_be_named("app", &app)?;
    let spec = spec_of(Fields::parse(&received.body)?, None)?;
    let _edit = shared.edit().await?;
    let which = own::id_or_uid(Kind::Application, &app);
    let found = shared.engine.stores().directory.app(caller.org, which).await?;
    let (status, app) = match found {
        Some(found) => (StatusCode::OK, changed(&shared, &found.app, spec).await?),
        None => (StatusCode::CREATED, made(&shared, &caller, spec, None).await?),
    };
    Ok(Answer::json(status, &ApplicationOut::from(&*app)).into_response())
}

pub(super) const PATCH: Operation =
    Operation::new("v1.application.patch", "Changes what is named of an application.")
        .token(Token::Org)
        .takes::<Patch<ApplicationIn>>()
        .gives::<ApplicationOut>(200)
        .or("conflict");

/// `PATCH /app/{app}`
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Answered {
    caller.org_only()?;
    let fields = Fields::parse(&received.body)?;
    let _edit = shared.edit().await?;
    let found = own::app(&shared, &caller, &app).await?;
    let spec = spec_of(fields, Some(&found.app.spec))?;
    let app = changed(&shared, &found.app, spec).await?;
    Ok(Answer::json(StatusCode::OK, &ApplicationOut::from(&*app)).into_response())
}

pub(super) const DELETE: Operation =
    Operation::new("v1.application.delete", "Deletes an application and its endpoints.")
        .token(Token::Org)
        .ends(204);

/// `DELETE /app/{app}`
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
) -> Answered {
    caller.org_only()?;
    let found = own::app(&shared, &caller, &app).await?;
    shared.engine.stores().directory.delete_app(found.app.key).await?;
    shared.engine.settled().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Creates an application.
pub(super) async fn made(
    shared: &Shared,
    caller: &Caller,
    spec: ApplicationSpec,
    once: Once<Arc<Application>>,
) -> Result<Arc<Application>, StoreError> {
    let directory = &shared.engine.stores().directory;
    let app = directory.create_app_once(caller.org, spec, random()?, once).await?;
    shared.engine.settled().await;
    Ok(app)
}

async fn changed(
    shared: &Shared,
    app: &Application,
    spec: ApplicationSpec,
) -> Result<Arc<Application>, StoreError> {
    let app = shared.engine.stores().directory.update_app(app.key, spec).await?;
    shared.engine.settled().await;
    Ok(app)
}

/// Reads an application; with an old one, as a patch of it.
pub(super) fn spec_of(
    mut fields: Fields<'_>,
    old: Option<&ApplicationSpec>,
) -> Result<ApplicationSpec, Problem> {
    let name = fields.firm("name", old.map(|old| old.name.clone()), None, checked(text::name));
    let uid_rule = |name: &str, uid: &str| text::uid(name, uid, Some(Kind::Application));
    let uid = old.and_then(|old| old.uid.clone());
    let throttle_rate = old.and_then(|old| old.throttle_rate);
    let old_metadata = old.map(|old| old.metadata.clone());
    let spec = ApplicationSpec {
        name: name.unwrap_or_default(),
        uid: fields.nullable(&["uid"], uid, checked(uid_rule)),
        throttle_rate: fields.nullable(
            &["throttleRate", "rateLimit"],
            throttle_rate,
            whole(1..=u64::from(u16::MAX)),
        ),
        metadata: fields
            .nullable(&["metadata"], old_metadata, metadata)
            .unwrap_or_else(|| "{}".to_owned()),
    };
    fields.finish().map(|()| spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, old: Option<&ApplicationSpec>) -> Result<ApplicationSpec, Problem> {
        spec_of(Fields::parse(json.as_bytes()).unwrap(), old)
    }

    #[test]
    fn create_reads_every_field() {
        let spec =
            read(r#"{"name":"A","uid":"a.1","rateLimit":5,"metadata":{"k":"v"},"x":1}"#, None);
        let expected = ApplicationSpec {
            name: "A".into(),
            uid: Some("a.1".into()),
            throttle_rate: Some(5),
            metadata: r#"{"k":"v"}"#.into(),
        };
        assert_eq!(spec.unwrap(), expected);
    }

    #[test]
    fn patch_keeps_what_is_absent_and_clears_what_is_null() {
        let old =
            read(r#"{"name":"A","uid":"a","throttleRate":5,"metadata":{"k":"v"}}"#, None).unwrap();
        assert_eq!(read("{}", Some(&old)).unwrap(), old);
        let cleared =
            read(r#"{"uid":null,"throttleRate":null,"metadata":null}"#, Some(&old)).unwrap();
        assert_eq!((cleared.uid, cleared.throttle_rate, &*cleared.metadata), (None, None, "{}"));
        assert!(read(r#"{"name":null}"#, Some(&old)).is_err());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for json in [
            "{}",
            r#"{"name":""}"#,
            r#"{"name":1}"#,
            r#"{"name":"a\u0000"}"#,
            r#"{"name":"a","uid":""}"#,
            r#"{"name":"a","uid":"a b"}"#,
            r#"{"name":"a","uid":"app_x"}"#,
            r#"{"name":"a","throttleRate":0}"#,
            r#"{"name":"a","throttleRate":65536}"#,
            r#"{"name":"a","throttleRate":1.5}"#,
            r#"{"name":"a","throttleRate":99999999999999999999}"#,
            r#"{"name":"a","metadata":{"k":1}}"#,
            r#"{"name":"a","metadata":"x"}"#,
        ] {
            assert_eq!(read(json, None).unwrap_err().status().as_u16(), 422, "{json}");
        }
    }
}
