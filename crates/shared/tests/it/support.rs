//! Servers, and stores on them.

use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use resilience::shared::SharedRules;
use shared::{PgBreakerStore, RedisBreakerStore};
use testparts::Postgres;

pub(crate) const KEY: &str = "payments";

/// Three failures; open for no time at all, with a lease of a quarter of a second.
pub(crate) const RULES: SharedRules = SharedRules {
    failures: 3,
    open_for: Duration::ZERO,
    open_for_max: Duration::ZERO,
    close_after: 1,
    lease: Duration::from_millis(250),
};

pub(crate) async fn in_redis(url: &str) -> RedisBreakerStore {
    let settings = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(Duration::from_secs(5)));
    let client = Client::open(url).unwrap();
    RedisBreakerStore::new(ConnectionManager::new_with_config(client, settings).await.unwrap())
}

pub(crate) fn in_postgres(url: &str) -> PgBreakerStore {
    let manager = Manager::new(url.parse().unwrap(), tokio_postgres::NoTls);
    PgBreakerStore::new(Pool::builder(manager).max_size(8).build().unwrap())
}

/// A store in a database of its own, and where that is.
pub(crate) async fn in_fresh_database() -> (PgBreakerStore, String) {
    let url = Postgres::shared().fresh_database();
    let store = in_postgres(&url);
    store.create_schema().await.unwrap();
    (store, url)
}
