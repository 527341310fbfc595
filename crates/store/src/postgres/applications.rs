//! Writes and look-ups of applications and endpoints.
//!
//! Never: change an endpoint without raising its application's version, or forget the URL it had.

use std::sync::Arc;

use domain::application::{AppSnapshot, Application, ApplicationSpec};
use domain::email::EmailAddress;
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::notice::{MANAGEMENT, News};
use domain::target::Target;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::conn::{Conn, all, one, rows, run, value};
use super::endpoints::{ENDPOINT, ENDPOINT_COLUMNS, endpoint};
use super::fault::Fault;
use super::rows::{At, get, id_at, maybe_narrow, maybe_text, small, text, time_at};
use super::tx::Tx;
use crate::StoreError;
use crate::cipher::Cipher;
use crate::directory::{EndpointChange, NewEndpoint};
use crate::stored::codes::Code as _;
use crate::stored::endpoint::{pack_breaker, pack_headers, pack_retry, seal_secrets};
use crate::stored::numbers::micros;
use crate::stored::pack::texts;

const NO_APP: StoreError = StoreError::Missing("application");
const NO_ENDPOINT: StoreError = StoreError::Missing("endpoint");

/// The columns that [`application`] reads.
pub(super) const APP: &str =
    "key, id, org, uid, name, throttle_rate, metadata, version, created_at, updated_at";

/// Reads [`APP`].
pub(super) fn application(row: &Row) -> Result<Application, StoreError> {
    application_at(row, 0)
}

/// Reads [`APP`] from this column on.
fn application_at(row: &Row, first: usize) -> Result<Application, StoreError> {
    Ok(Application {
        key: AppKey(get(row, first)?),
        id: id_at(row, first + 1)?,
        org: id_at(row, first + 2)?,
        spec: ApplicationSpec {
            uid: get(row, first + 3)?,
            name: get(row, first + 4)?,
            throttle_rate: maybe_narrow(row, first + 5)?,
            metadata: get(row, first + 6)?,
        },
        version: get(row, first + 7)?,
        created_at: time_at(row, first + 8)?,
        updated_at: time_at(row, first + 9)?,
    })
}

/// An application that was not deleted.
async fn live_app(conn: &Conn, app: AppKey) -> Result<Option<Application>, Fault> {
    let sql = format!("SELECT {APP} FROM app WHERE key = $1 AND deleted_at IS NULL");
    one(conn, &sql, &[&app.0], application).await
}

/// A live application and its live endpoints, as they are at one moment; `which` names it by $1 and
/// $2.
pub(super) async fn snapshot(
    conn: &Conn,
    which: &str,
    values: [&(dyn ToSql + Sync); 2],
    cipher: Option<&Cipher>,
) -> Result<Option<AppSnapshot>, Fault> {
    let apps = APP.split(", ").map(|name| format!("app.{name}")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT {ENDPOINT}, {apps} FROM app
         LEFT JOIN endpoint ON endpoint.app = app.key AND endpoint.deleted_at IS NULL
         WHERE {which} AND app.deleted_at IS NULL ORDER BY endpoint.key"
    );
    let found = rows(conn, &sql, &values).await?;
    let Some(first) = found.first() else { return Ok(None) };
    let app = Arc::new(application_at(first, ENDPOINT_COLUMNS)?);
    let mut endpoints = Vec::new();
    for row in &found {
        if get::<Option<i64>>(row, 0)?.is_some() {
            endpoints.push(endpoint(row, cipher)?);
        }
    }
    Ok(Some(AppSnapshot { app, endpoints }))
}

/// An endpoint that was not deleted.
pub(super) async fn live_endpoint(
    conn: &Conn,
    key: EndpointKey,
    cipher: Option<&Cipher>,
) -> Result<Option<Arc<Endpoint>>, Fault> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM endpoint JOIN app ON app.key = endpoint.app
         WHERE endpoint.key = $1 AND endpoint.deleted_at IS NULL"
    );
    one(conn, &sql, &[&key.0], |row| endpoint(row, cipher)).await
}

/// Endpoints, deleted or not, in the order that was asked for.
pub(super) async fn past_endpoints(
    conn: &Conn,
    keys: &[EndpointKey],
    cipher: Option<&Cipher>,
) -> Result<Vec<Arc<Endpoint>>, Fault> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (key, place)
         JOIN endpoint ON endpoint.key = asked.key JOIN app ON app.key = endpoint.app ORDER BY asked.place"
    );
    let keys: Vec<i64> = keys.iter().map(|key| key.0).collect();
    all(conn, &sql, &[&keys], |row| endpoint(row, cipher)).await
}

/// A unique name that a live row has is the caller's matter.
fn unless_taken<T>(made: Result<T, Fault>) -> Result<T, Fault> {
    use tokio_postgres::error::SqlState;
    match made {
        Err(Fault::Sql(fault)) if fault.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            Err(StoreError::Conflict("uid").into())
        }
        made => made,
    }
}

impl Tx {
    pub(super) async fn create_app(
        &mut self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
    ) -> Result<Arc<Application>, Fault> {
        let id = PublicId::new(self.draw(), random);
        let sql = "INSERT INTO app (id, org, uid, name, throttle_rate, metadata, version, created_at, updated_at)
                   VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $7) RETURNING key";
        let made = value(
            self.conn(),
            sql,
            &[
                &&id.as_bytes()[..],
                &&org.as_bytes()[..],
                &maybe_text(spec.uid.as_deref()),
                &text(&spec.name),
                &spec.throttle_rate.map(i64::from),
                &text(&spec.metadata),
                &At(self.now),
            ],
        )
        .await;
        let key = unless_taken(made)?.map(AppKey).ok_or(NO_APP)?;
        self.told_app(key, org);
        let (created_at, updated_at) = (self.now, self.now);
        Ok(Arc::new(Application { key, id, org, spec, version: 1, created_at, updated_at }))
    }

    pub(super) async fn update_app(
        &mut self,
        key: AppKey,
        spec: ApplicationSpec,
    ) -> Result<Arc<Application>, Fault> {
        self.lock_app(key).await?;
        let found = live_app(self.conn(), key).await?.ok_or(NO_APP)?;
        let version = self.raise(key).await?;
        let sql =
            "UPDATE app SET uid = $2, name = $3, throttle_rate = $4, metadata = $5, updated_at = $6
                   WHERE key = $1";
        let now = At(self.now);
        let values: [&(dyn ToSql + Sync); 6] = [
            &key.0,
            &maybe_text(spec.uid.as_deref()),
            &text(&spec.name),
            &spec.throttle_rate.map(i64::from),
            &text(&spec.metadata),
            &now,
        ];
        unless_taken(run(self.conn(), sql, &values).await)?;
        self.told_app(key, found.org);
        Ok(Arc::new(Application { spec, version, updated_at: self.now, ..found }))
    }

    pub(super) async fn delete_app(&mut self, key: AppKey) -> Result<(), Fault> {
        self.lock_app(key).await?;
        let found = live_app(self.conn(), key).await?.ok_or(NO_APP)?;
        self.raise(key).await?;
        self.note_all(News::EndpointDeleted, key).await?;
        let now = At(self.now);
        let sql = "UPDATE app SET deleted_at = $2 WHERE key = $1";
        run(self.conn(), sql, &[&key.0, &now]).await?;
        let sql = "UPDATE endpoint SET deleted_at = $2 WHERE app = $1 AND deleted_at IS NULL";
        self.write(sql, &[&key.0, &now]).await?;
        self.told_app(key, found.org);
        Ok(())
    }

    pub(super) async fn create_endpoint(
        &mut self,
        new: NewEndpoint,
        cipher: Option<&Cipher>,
    ) -> Result<Arc<Endpoint>, Fault> {
        self.lock_app(new.app).await?;
        let app = live_app(self.conn(), new.app).await?.ok_or(NO_APP)?;
        let mut made = Endpoint {
            key: EndpointKey(0),
            id: PublicId::new(self.draw(), new.random),
            app: new.app,
            app_id: app.id,
            spec: new.spec,
            secrets: vec![new.secret],
            version: self.raise(new.app).await?,
            created_at: self.now,
            updated_at: self.now,
        };
        // The row is made with what must be unique; all the rest is written as by any change.
        let sql = "INSERT INTO endpoint (id, app, uid, url, description, spec_version, metadata, headers, retry,
                       breaker, ordering, secrets, version, created_at, updated_at)
                   VALUES ($1, $2, $3, '', '', 0, '', '', '', '', 0, '', 0, $4, $4) RETURNING key";
        let key = value(
            self.conn(),
            sql,
            &[
                &&made.id.as_bytes()[..],
                &made.app.0,
                &maybe_text(made.spec.uid.as_deref()),
                &At(self.now),
            ],
        )
        .await;
        made.key = unless_taken(key)?.map(EndpointKey).ok_or(NO_ENDPOINT)?;
        self.put_endpoint(&made, cipher).await?;
        self.note(News::EndpointCreated, made.key, None).await?;
        Ok(Arc::new(made))
    }

    pub(super) async fn change_endpoint(
        &mut self,
        key: EndpointKey,
        change: EndpointChange,
        cipher: Option<&Cipher>,
    ) -> Result<Arc<Endpoint>, Fault> {
        self.lock_app_of(key).await?;
        let found = live_endpoint(self.conn(), key, cipher).await?.ok_or(NO_ENDPOINT)?;
        let mut endpoint = Arc::unwrap_or_clone(found);
        if let Some(spec) = change.spec {
            endpoint.spec = spec;
        } else if let Some(disabled) = change.disabled {
            endpoint.spec.disabled = disabled;
        }
        if let Some(secrets) = change.secrets {
            endpoint.secrets = secrets;
        }
        endpoint.version = self.raise(endpoint.app).await?;
        endpoint.updated_at = self.now;
        self.put_endpoint(&endpoint, cipher).await?;
        self.note(News::EndpointUpdated, key, None).await?;
        Ok(Arc::new(endpoint))
    }

    /// Keeps other nodes from changing the endpoint between a read and a write here.
    async fn lock_app_of(&self, endpoint: EndpointKey) -> Result<(), Fault> {
        let sql = "SELECT app FROM endpoint WHERE key = $1";
        match value(self.conn(), sql, &[&endpoint.0]).await? {
            Some(app) => self.lock_app(AppKey(app)).await,
            None => Err(NO_ENDPOINT.into()),
        }
    }

    pub(super) async fn delete_endpoint(&mut self, key: EndpointKey) -> Result<(), Fault> {
        self.lock_app_of(key).await?;
        let sql = "SELECT app FROM endpoint WHERE key = $1 AND deleted_at IS NULL";
        let app = value(self.conn(), sql, &[&key.0]).await?.map(AppKey).ok_or(NO_ENDPOINT)?;
        let version = self.raise(app).await?;
        let sql = "UPDATE endpoint SET deleted_at = $2, version = $3 WHERE key = $1";
        run(self.conn(), sql, &[&key.0, &At(self.now), &version]).await?;
        self.told(app, Some(key));
        self.note(News::EndpointDeleted, key, None).await
    }

    /// Writes all of an endpoint's row.
    async fn put_endpoint(
        &mut self,
        endpoint: &Endpoint,
        cipher: Option<&Cipher>,
    ) -> Result<(), Fault> {
        let spec = &endpoint.spec;
        let sql = "UPDATE endpoint SET uid = $2, url = $3, description = $4, spec_version = $5, disabled = $6,
                       event_types = $7, channels = $8, throttle_rate = $9, metadata = $10, headers = $11, retry = $12,
                       breaker = $13, timeout = $14, ordering = $15, secrets = $16, version = $17, updated_at = $18,
                       contact_email = $19, auto_replay = $20, health_check_url = $21
                   WHERE key = $1";
        let values: [&(dyn ToSql + Sync); 21] = [
            &endpoint.key.0,
            &maybe_text(spec.uid.as_deref()),
            &spec.target.as_str(),
            &text(&spec.description),
            &i64::from(spec.version),
            &spec.disabled.map(|why| small(why.code())),
            &spec.event_types.as_deref().map(texts),
            &spec.channels.as_deref().map(texts),
            &spec.throttle_rate.map(i64::from),
            &text(&spec.metadata),
            &pack_headers(&spec.headers),
            &pack_retry(&spec.retry),
            &pack_breaker(&spec.breaker),
            &spec.timeout.map(micros),
            &small(spec.ordering.code()),
            &seal_secrets(&endpoint.secrets, endpoint.id, cipher)?,
            &endpoint.version,
            &At(endpoint.updated_at),
            &spec.contact_email.as_ref().map(EmailAddress::as_str),
            &spec.auto_replay,
            &spec.health_check.as_ref().map(Target::as_str),
        ];
        unless_taken(run(self.conn(), sql, &values).await)?;
        self.keep_url(endpoint.key, spec.target.as_str()).await?;
        self.told(endpoint.app, Some(endpoint.key));
        Ok(())
    }

    /// Notes the URL from now on, if it is another than before.
    async fn keep_url(&mut self, endpoint: EndpointKey, url: &str) -> Result<(), Fault> {
        let since = self.draw().cast_signed();
        let sql = "INSERT INTO endpoint_url (endpoint, since, at, url)
                   SELECT $1, $2, $3, $4 WHERE $4::text IS DISTINCT FROM (
                       SELECT url FROM endpoint_url WHERE endpoint = $1 ORDER BY since DESC LIMIT 1)";
        let now = At(self.now);
        self.write(sql, &[&endpoint.0, &since, &now, &url]).await.map(drop)
    }

    /// The same for an application as a whole, which may be one that tells others.
    fn told_app(&mut self, app: AppKey, org: PublicId) {
        if org == MANAGEMENT {
            self.told_orgs = None;
        }
        self.told(app, None);
    }

    /// After the commit the engine is told.
    fn told(&mut self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.batch.rows += 1;
        self.batch.changed.push((app, endpoint));
    }
}
