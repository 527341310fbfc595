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
use rusqlite::{Connection, Row, params};

use super::endpoints::{ENDPOINT, endpoint};
use super::rows::{all, id_at, maybe_narrow, one, time_at};
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
pub(super) fn application(row: &Row<'_>) -> Result<Application, StoreError> {
    Ok(Application {
        key: AppKey(row.get(0)?),
        id: id_at(row, 1)?,
        org: id_at(row, 2)?,
        spec: ApplicationSpec {
            uid: row.get(3)?,
            name: row.get(4)?,
            throttle_rate: maybe_narrow(row, 5)?,
            metadata: row.get(6)?,
        },
        version: row.get(7)?,
        created_at: time_at(row, 8)?,
        updated_at: time_at(row, 9)?,
    })
}

/// An application that was not deleted.
pub(super) fn live_app(conn: &Connection, app: AppKey) -> Result<Option<Application>, StoreError> {
    let sql = format!("SELECT {APP} FROM app WHERE key = ?1 AND deleted_at IS NULL");
    one(&mut conn.prepare_cached(&sql)?.query([app.0])?, application)
}

/// An application with its live endpoints. The caller holds a snapshot.
pub(super) fn with_endpoints(
    conn: &Connection,
    app: Application,
    cipher: Option<&Cipher>,
) -> Result<AppSnapshot, StoreError> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM endpoint JOIN app ON app.key = endpoint.app
         WHERE endpoint.app = ?1 AND endpoint.deleted_at IS NULL ORDER BY endpoint.key"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let endpoints = all(&mut statement.query([app.key.0])?, |row| endpoint(row, cipher))?;
    Ok(AppSnapshot { app: Arc::new(app), endpoints })
}

/// An endpoint that was not deleted.
pub(super) fn live_endpoint(
    conn: &Connection,
    key: EndpointKey,
    cipher: Option<&Cipher>,
) -> Result<Option<Arc<Endpoint>>, StoreError> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM endpoint JOIN app ON app.key = endpoint.app
         WHERE endpoint.key = ?1 AND endpoint.deleted_at IS NULL"
    );
    one(&mut conn.prepare_cached(&sql)?.query([key.0])?, |row| endpoint(row, cipher))
}

/// Endpoints, deleted or not.
pub(super) fn past_endpoints(
    conn: &Connection,
    keys: &[EndpointKey],
    cipher: Option<&Cipher>,
) -> Result<Vec<Arc<Endpoint>>, StoreError> {
    let sql = format!(
        "SELECT {ENDPOINT} FROM endpoint JOIN app ON app.key = endpoint.app WHERE endpoint.key = ?1"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for key in keys {
        found.extend(one(&mut statement.query([key.0])?, |row| endpoint(row, cipher))?);
    }
    Ok(found)
}

/// Refuses a name that a live row has: nothing was changed, so nothing was inserted.
const fn unless_taken(changed: usize) -> Result<(), StoreError> {
    if changed == 0 { Err(StoreError::Conflict("uid")) } else { Ok(()) }
}

impl Tx<'_> {
    pub(super) fn create_app(
        &mut self,
        org: PublicId,
        spec: ApplicationSpec,
        random: [u8; 12],
    ) -> Result<Arc<Application>, StoreError> {
        let id = PublicId::new(self.draw(), random);
        let now = self.now.as_micros();
        let sql = "INSERT INTO app (id, org, uid, name, throttle_rate, metadata, version, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?7) ON CONFLICT DO NOTHING";
        unless_taken(self.conn.prepare_cached(sql)?.execute(params![
            id.as_bytes(),
            org.as_bytes(),
            spec.uid,
            spec.name,
            spec.throttle_rate,
            spec.metadata,
            now,
        ])?)?;
        let key = AppKey(self.conn.last_insert_rowid());
        self.told_app(key, org);
        let (created_at, updated_at) = (self.now, self.now);
        Ok(Arc::new(Application { key, id, org, spec, version: 1, created_at, updated_at }))
    }

    pub(super) fn update_app(
        &mut self,
        key: AppKey,
        spec: ApplicationSpec,
    ) -> Result<Arc<Application>, StoreError> {
        let found = live_app(self.conn, key)?.ok_or(NO_APP)?;
        let version = self.raise(key)?;
        let sql = "UPDATE OR IGNORE app SET uid = ?2, name = ?3, throttle_rate = ?4, metadata = ?5, updated_at = ?6
                   WHERE key = ?1";
        unless_taken(self.conn.prepare_cached(sql)?.execute(params![
            key.0,
            spec.uid,
            spec.name,
            spec.throttle_rate,
            spec.metadata,
            self.now.as_micros(),
        ])?)?;
        self.told_app(key, found.org);
        Ok(Arc::new(Application { spec, version, updated_at: self.now, ..found }))
    }

    pub(super) fn delete_app(&mut self, key: AppKey) -> Result<(), StoreError> {
        let found = live_app(self.conn, key)?.ok_or(NO_APP)?;
        self.raise(key)?;
        self.note_all(News::EndpointDeleted, key)?;
        let now = self.now.as_micros();
        let sql = "UPDATE app SET deleted_at = ?2 WHERE key = ?1";
        self.conn.prepare_cached(sql)?.execute([key.0, now])?;
        let sql = "UPDATE endpoint SET deleted_at = ?2 WHERE app = ?1 AND deleted_at IS NULL";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute([key.0, now])?;
        self.told_app(key, found.org);
        Ok(())
    }

    pub(super) fn create_endpoint(
        &mut self,
        new: NewEndpoint,
        cipher: Option<&Cipher>,
    ) -> Result<Arc<Endpoint>, StoreError> {
        let app = live_app(self.conn, new.app)?.ok_or(NO_APP)?;
        let mut made = Endpoint {
            key: EndpointKey(0),
            id: PublicId::new(self.draw(), new.random),
            app: new.app,
            app_id: app.id,
            spec: new.spec,
            secrets: vec![new.secret],
            version: self.raise(new.app)?,
            created_at: self.now,
            updated_at: self.now,
        };
        // The row is made with what must be unique; all the rest is written as by any change.
        let sql = "INSERT INTO endpoint (id, app, uid, url, description, spec_version, metadata, headers, retry,
                       breaker, ordering, secrets, version, created_at, updated_at)
                   VALUES (?1, ?2, ?3, '', '', 0, '', x'', x'', x'', 0, x'', 0, ?4, ?4) ON CONFLICT DO NOTHING";
        let now = self.now.as_micros();
        let values = params![made.id.as_bytes(), made.app.0, made.spec.uid, now];
        unless_taken(self.conn.prepare_cached(sql)?.execute(values)?)?;
        made.key = EndpointKey(self.conn.last_insert_rowid());
        self.put_endpoint(&made, cipher)?;
        self.note(News::EndpointCreated, made.key, None)?;
        Ok(Arc::new(made))
    }

    pub(super) fn change_endpoint(
        &mut self,
        key: EndpointKey,
        change: EndpointChange,
        cipher: Option<&Cipher>,
    ) -> Result<Arc<Endpoint>, StoreError> {
        let found = live_endpoint(self.conn, key, cipher)?.ok_or(NO_ENDPOINT)?;
        let mut endpoint = Arc::unwrap_or_clone(found);
        if let Some(spec) = change.spec {
            endpoint.spec = spec;
        } else if let Some(disabled) = change.disabled {
            endpoint.spec.disabled = disabled;
        }
        if let Some(secrets) = change.secrets {
            endpoint.secrets = secrets;
        }
        endpoint.version = self.raise(endpoint.app)?;
        endpoint.updated_at = self.now;
        self.put_endpoint(&endpoint, cipher)?;
        self.note(News::EndpointUpdated, key, None)?;
        Ok(Arc::new(endpoint))
    }

    pub(super) fn delete_endpoint(&mut self, key: EndpointKey) -> Result<(), StoreError> {
        let sql = "SELECT app FROM endpoint WHERE key = ?1 AND deleted_at IS NULL";
        let app = one(&mut self.conn.prepare_cached(sql)?.query([key.0])?, |row| {
            Ok(AppKey(row.get(0)?))
        })?;
        let app = app.ok_or(NO_ENDPOINT)?;
        let version = self.raise(app)?;
        let sql = "UPDATE endpoint SET deleted_at = ?2, version = ?3 WHERE key = ?1";
        self.conn.prepare_cached(sql)?.execute([key.0, self.now.as_micros(), version])?;
        self.told(app, Some(key));
        self.note(News::EndpointDeleted, key, None)
    }

    /// Writes all of an endpoint's row.
    fn put_endpoint(
        &mut self,
        endpoint: &Endpoint,
        cipher: Option<&Cipher>,
    ) -> Result<(), StoreError> {
        let spec = &endpoint.spec;
        let sql = "UPDATE OR IGNORE endpoint SET uid = ?2, url = ?3, description = ?4, spec_version = ?5,
                       disabled = ?6, event_types = ?7, channels = ?8, throttle_rate = ?9, metadata = ?10,
                       headers = ?11, retry = ?12, breaker = ?13, timeout = ?14, ordering = ?15, secrets = ?16,
                       version = ?17, updated_at = ?18, contact_email = ?19,
                       auto_replay = ?20, health_check_url = ?21
                   WHERE key = ?1";
        unless_taken(self.conn.prepare_cached(sql)?.execute(params![
            endpoint.key.0,
            spec.uid,
            spec.target.as_str(),
            spec.description,
            spec.version,
            spec.disabled.map(|why| why.code()),
            spec.event_types.as_deref().map(texts),
            spec.channels.as_deref().map(texts),
            spec.throttle_rate,
            spec.metadata,
            pack_headers(&spec.headers),
            pack_retry(&spec.retry),
            pack_breaker(&spec.breaker),
            spec.timeout.map(micros),
            spec.ordering.code(),
            seal_secrets(&endpoint.secrets, endpoint.id, cipher)?,
            endpoint.version,
            endpoint.updated_at.as_micros(),
            spec.contact_email.as_ref().map(EmailAddress::as_str),
            spec.auto_replay,
            spec.health_check.as_ref().map(Target::as_str),
        ])?)?;
        self.keep_url(endpoint.key, spec.target.as_str())?;
        self.told(endpoint.app, Some(endpoint.key));
        Ok(())
    }

    /// Notes the URL from now on, if it is another than before.
    fn keep_url(&mut self, endpoint: EndpointKey, url: &str) -> Result<(), StoreError> {
        let since = self.draw().cast_signed();
        let sql = "INSERT INTO endpoint_url (endpoint, since, at, url)
                   SELECT ?1, ?2, ?3, ?4 WHERE ?4 IS NOT (
                       SELECT url FROM endpoint_url WHERE endpoint = ?1 ORDER BY since DESC LIMIT 1)";
        let values = params![endpoint.0, since, self.now.as_micros(), url];
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(values)?;
        Ok(())
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
