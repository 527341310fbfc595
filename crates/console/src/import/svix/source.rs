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

use super::rows::{All, App, Endpoint, EventType, Rows, Unread};
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
        if let Some((scheme, _)) = url.split_once("://")
            && !matches!(scheme, "postgres" | "postgresql")
        {
            let scheme = safe(scheme);
            return Err(Failure::Usage(format!(
                "--from must be a URL, postgres://…, of the database of a Svix server: Svix keeps \
                 what is imported in PostgreSQL, so there is nothing to read under {scheme}://"
            )));
        }
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
        let event_types: Rows<EventType> = self.rows(EVENT_TYPES, org).await?;
        let mut apps: Rows<App> = self.rows(APPS, org).await?;
        let mut endpoints: Rows<Endpoint> = self.rows(ENDPOINTS, org).await?;
        let mut metadata = self.metadata("applicationmetadata", APP_METADATA, org).await?;
        for app in &mut apps.read {
            app.metadata = metadata.remove(&app.id);
        }
        let mut metadata = self.metadata("endpointmetadata", ENDPOINT_METADATA, org).await?;
        for endpoint in &mut endpoints.read {
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
        let rows: Rows<Metadata> = self.rows(statement, org).await?;
        Ok(rows.read.into_iter().map(|row| (row.id, row.data)).collect())
    }

    async fn rows<T: DeserializeOwned>(
        &self,
        statement: &str,
        org: &str,
    ) -> Result<Rows<T>, Failure> {
        let mut all = Rows::default();
        for row in self.ask(statement, &[(&org, Type::VARCHAR)]).await? {
            match serde_json::from_str(&row) {
                Ok(read) => all.read.push(read),
                Err(_) => all.unread.push(unread(&row)),
            }
        }
        Ok(all)
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

/// Its values are not said: a key may be among them.
fn unread(row: &str) -> Unread {
    let value: Value = serde_json::from_str(row).unwrap_or_default();
    // Event types go by their name, whatever else they have.
    let is_type = value["id"].as_str().is_some_and(|id| id.starts_with("evtype_"));
    let name = value[if is_type { "name" } else { "id" }].as_str();
    Unread {
        name: name.unwrap_or("without a name").to_owned(),
        why: "a column holds something else than a Svix server's".to_owned(),
    }
}

fn failed(fault: &tokio_postgres::Error) -> Failure {
    let said = root(fault);
    Failure::Other(format!("the database is no Svix server's, or broke off: {}", safe(&said)))
}

fn list(orgs: &[String]) -> String {
    safe(&orgs.join(", ")).into_owned()
}
