//! The database of a Svix server, read once.
//!
//! Rows are read as JSON, so that every version of the schema will do.
//! Never: written to; the session is read-only.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config};

use super::rows::{All, App, Endpoint, EventType};
use crate::failure::{Failure, root};
use crate::safe::safe;
use crate::web::database_tls;

/// An organisation that every Svix server has for itself.
const MANAGEMENT: &str = "org_00000000000SvixManagement00";

const SESSION: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; \
    SET bytea_output = 'hex'; SET timezone = 'UTC'";
const ORGANISATIONS: &str = "SELECT org_id FROM application WHERE NOT deleted \
    UNION SELECT org_id FROM eventtype ORDER BY 1";
const EVENT_TYPES: &str = "SELECT row_to_json(t)::text FROM eventtype t \
    WHERE org_id = $1 ORDER BY name";
const APPS: &str = "SELECT row_to_json(t)::text FROM application t \
    WHERE org_id = $1 AND NOT deleted ORDER BY created_at, id";
const ENDPOINTS: &str = "SELECT row_to_json(t)::text FROM endpoint t \
    JOIN application a ON a.id = t.app_id \
    WHERE a.org_id = $1 AND NOT a.deleted AND NOT t.deleted ORDER BY t.created_at, t.id";
const HAS_TABLE: &str = "SELECT to_regclass($1) IS NOT NULL";
const APP_METADATA: &str = "SELECT row_to_json(t)::text FROM applicationmetadata t \
    JOIN application a ON a.id = t.id WHERE a.org_id = $1";
const ENDPOINT_METADATA: &str = "SELECT row_to_json(t)::text FROM endpointmetadata t \
    JOIN endpoint e ON e.id = t.id JOIN application a ON a.id = e.app_id WHERE a.org_id = $1";

/// A connection.
pub(crate) struct Source(Client);

#[derive(Deserialize)]
struct Metadata {
    id: String,
    data: Value,
}

impl Source {
    /// Connects; with TLS if the server has it.
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let config: Config = url.parse().map_err(|fault: tokio_postgres::Error| {
            Failure::Usage(format!("--from must be a URL, postgres://…: {}", root(&fault)))
        })?;
        let connected = config.connect(database_tls()).await;
        let (client, connection) = connected.map_err(|fault| {
            let said = root(&fault);
            let hint = match said.contains("certificate") {
                true => "; ?sslmode=disable in the URL goes without TLS",
                false => "",
            };
            Failure::Unreachable(format!("cannot connect to the database: {}{hint}", safe(&said)))
        })?;
        // Its end is seen by whoever asks next.
        tokio::spawn(connection);
        client.batch_execute(SESSION).await.map_err(|fault| failed(&fault))?;
        Ok(Self(client))
    }

    /// The organisation of this id, or the only one.
    pub(crate) async fn organisation(&self, named: Option<&str>) -> Result<String, Failure> {
        let rows = self.ask(ORGANISATIONS, &[]).await?;
        let all: Vec<String> = rows.into_iter().filter(|org| org != MANAGEMENT).collect();
        match (named, &all[..]) {
            (Some(org), _) if all.iter().any(|other| other == org) => Ok(org.to_owned()),
            (Some(_), _) => Err(Failure::Usage(format!("--org must be one of: {}", list(&all)))),
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(Failure::Other("the database has no organisation".to_owned())),
            (None, all) => Err(Failure::Usage(format!("--org must say which of: {}", list(all)))),
        }
    }

    /// All of an organisation.
    pub(crate) async fn read(&self, org: &str) -> Result<All, Failure> {
        let event_types: Vec<EventType> = self.rows(EVENT_TYPES, org).await?;
        let mut apps: Vec<App> = self.rows(APPS, org).await?;
        let mut endpoints: Vec<Endpoint> = self.rows(ENDPOINTS, org).await?;
        let mut metadata = self.metadata("applicationmetadata", APP_METADATA, org).await?;
        for app in &mut apps {
            app.metadata = metadata.remove(&app.id);
        }
        let mut metadata = self.metadata("endpointmetadata", ENDPOINT_METADATA, org).await?;
        for endpoint in &mut endpoints {
            endpoint.metadata = metadata.remove(&endpoint.id);
        }
        Ok(All { event_types, apps, endpoints })
    }

    /// Early versions have no such table.
    async fn metadata(
        &self,
        table: &str,
        statement: &str,
        org: &str,
    ) -> Result<BTreeMap<String, Value>, Failure> {
        let there = self.0.query_typed(HAS_TABLE, &[(&table, Type::TEXT)]).await;
        let there = there.map_err(|fault| failed(&fault))?;
        if !there.first().is_some_and(|row| row.get(0)) {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<Metadata> = self.rows(statement, org).await?;
        Ok(rows.into_iter().map(|row| (row.id, row.data)).collect())
    }

    async fn rows<T: DeserializeOwned>(
        &self,
        statement: &str,
        org: &str,
    ) -> Result<Vec<T>, Failure> {
        let rows = self.ask(statement, &[(&org, Type::VARCHAR)]).await?;
        let read = rows.iter().map(|row| serde_json::from_str(row));
        read.collect::<Result<_, _>>().map_err(|fault| {
            Failure::Other(format!("the database is no Svix server's, or of a new kind: {fault}"))
        })
    }

    async fn ask(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<String>, Failure> {
        let rows = self.0.query_typed(statement, parameters).await;
        let rows = rows.map_err(|fault| failed(&fault))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

fn failed(fault: &tokio_postgres::Error) -> Failure {
    let said = root(fault);
    Failure::Other(format!("the database is no Svix server's, or broke off: {}", safe(&said)))
}

fn list(orgs: &[String]) -> String {
    safe(&orgs.join(", ")).into_owned()
}
