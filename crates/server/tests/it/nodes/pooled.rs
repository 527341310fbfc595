//! Nodes behind a pooler in transaction mode, which gives a session of the database to one client
//! after another: PgBouncer, without prepared statements.
//!
//! Never: a session of one's own but around it.

use serde_json::json;
use testparts::{PgBouncer, Postgres};
use tokio::sync::watch;

use super::fleet::Fleet;
use super::load::{all_arrived, load, six_apps};
use super::{PATIENT, changes};
use crate::support::server::command;
use crate::support::{Receiver, Reply, Server};

const PAGE: &str = include_str!("../../../../../docs/postgresql.md");

/// Fewer sessions than one node has connections.
const SESSIONS: usize = 8;

#[tokio::test]
async fn three_nodes_go_through_a_pooler_in_transaction_mode() {
    let direct = Postgres::shared().fresh_database();
    Postgres::shared().give_settings(&direct, PAGE);
    let bouncer = PgBouncer::start(Postgres::shared(), SESSIONS);
    let url = bouncer.url(direct.rsplit('/').next().unwrap());
    let pooled = [
        ("PEYK_DATABASE_DIRECT_URL", direct.as_str()),
        ("PEYK_DATABASE_POOLED", "true"),
        PATIENT[0],
        PATIENT[1],
    ];
    let mut fleet = Fleet::at(url, None, (3, &pooled)).await;
    changes(&fleet).await;
    let receiver = Receiver::scripted(|number, _| Reply::status([503, 200][number.min(1)])).await;
    let apps = six_apps(&fleet, &receiver).await;
    let (stop, stopped) = watch::channel(false);
    let nodes: Vec<&Server> = fleet.nodes.iter().collect();
    let kills = async {
        receiver.wait_for(300).await;
        stop.send(true).unwrap();
    };
    let (mut acknowledged, ()) = tokio::join!(load(&nodes, &apps, stopped), kills);
    let statements = "SELECT count(*) FROM pg_prepared_statements";
    assert_eq!(fleet.sql(statements), "0", "{}", bouncer.said());
    fleet.nodes.remove(0).kill();
    for app in &apps {
        acknowledged.push(fleet.nodes[0].message(app, json!({"n": 0})).await);
    }
    let repeated = all_arrived(&acknowledged, (&fleet.nodes[0], &apps), &receiver).await;
    println!("acknowledged {}, sent again {repeated}", acknowledged.len());
}

#[tokio::test]
async fn a_pooler_whose_sessions_lack_settings_is_refused_by_their_names() {
    let direct = Postgres::shared().fresh_database();
    let name = direct.rsplit('/').next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for some in ["SET timezone = 'Pacific/Kiritimati'", "SET search_path = other"] {
        Postgres::shared().give_settings(&direct, PAGE);
        Postgres::shared().sql(&direct, &format!("ALTER ROLE postgres IN DATABASE {name} {some}"));
        let bouncer = PgBouncer::start(Postgres::shared(), SESSIONS);
        let mut serve = command(dir.path(), &["serve"]);
        serve.env("PEYK_DATABASE_URL", bouncer.url(name)).env("PEYK_DATABASE_POOLED", "true");
        let output = serve.env("PEYK_DATABASE_DIRECT_URL", &direct).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let setting = some.split(' ').nth(1).unwrap();
        assert!(said.contains(&format!("({setting})")) && said.contains("postgresql.md"), "{said}");
    }
    let tables = "SELECT count(*) FROM pg_namespace WHERE nspname = 'peyk'";
    assert_eq!(Postgres::shared().sql(&direct, tables), "0", "nothing was made");
}
