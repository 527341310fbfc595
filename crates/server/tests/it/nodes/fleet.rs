//! Servers on one database, and what is to be seen of them there.
//!
//! Never: reach into a process.

use domain::ids::EndpointKey;
use domain::nodes::Partition;
use testparts::Postgres;

use crate::support::{Server, until};

/// Servers on one database.
pub(super) struct Fleet {
    pub(super) nodes: Vec<Server>,
    pub(super) url: String,
    /// The server of its database, if that is not the one that all tests share.
    pub(super) postgres: Option<Postgres>,
    settings: Vec<(String, String)>,
}

impl Fleet {
    /// So many, each with its share.
    pub(super) async fn start(count: usize, settings: &[(&str, &str)]) -> Self {
        Self::on(None, count, settings).await
    }

    /// The same, on a server of PostgreSQL that may go away.
    pub(super) async fn on(
        postgres: Option<Postgres>,
        count: usize,
        settings: &[(&str, &str)],
    ) -> Self {
        let url = postgres.as_ref().unwrap_or_else(|| Postgres::shared()).fresh_database();
        Self::at(url, postgres, (count, settings)).await
    }

    /// The same, where the URL of the database is known.
    pub(super) async fn at(
        url: String,
        postgres: Option<Postgres>,
        (count, settings): (usize, &[(&str, &str)]),
    ) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(own).collect();
        let mut fleet = Self { nodes: Vec::new(), url, postgres, settings };
        for _ in 0..count {
            fleet.join().await;
        }
        if !fleet.settings.iter().any(|(name, _)| name == "PEYK_ROLES") {
            fleet.wait_even().await;
        }
        fleet
    }

    /// One more.
    pub(super) async fn join(&mut self) {
        self.join_as(&[]).await;
    }

    /// One more, with settings of its own.
    pub(super) async fn join_as(&mut self, own: &[(&str, &str)]) {
        let url = self.url.clone();
        let mut settings = vec![("PEYK_DATABASE_URL", url.as_str())];
        settings.extend(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        settings.extend(own);
        let node = Server::with(&settings).await;
        self.nodes.push(node);
    }

    /// What a statement gives.
    pub(super) fn sql(&self, statement: &str) -> String {
        self.postgres.as_ref().unwrap_or_else(|| Postgres::shared()).sql(&self.url, statement)
    }

    /// The nodes that the database knows, in order.
    pub(super) fn members(&self) -> String {
        self.sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM peyk.node")
    }

    /// Waits until all nodes that run have a fair share.
    pub(super) async fn wait_even(&self) {
        self.wait_even_of(self.nodes.len()).await;
    }

    /// The same, of so many.
    pub(super) async fn wait_even_of(&self, count: usize) {
        let sql = "SELECT count(*), min(owned), max(owned) FROM (SELECT count(partition.id) AS owned
                       FROM peyk.node LEFT JOIN peyk.partition ON owner = node.id GROUP BY node.id) AS each";
        let (least, most) = (256 / count, 256_usize.div_ceil(count));
        let expected = format!("{count}|{least}|{most}");
        until("fair shares", || async { (self.sql(sql) == expected).then_some(()) }).await;
    }

    /// Which of them serves endpoint `e` of an application.
    pub(super) fn owner_of(&self, app: &str) -> usize {
        self.try_owner_of(app).unwrap()
    }

    /// The same, if any of them does.
    pub(super) fn try_owner_of(&self, app: &str) -> Option<usize> {
        let key = self.sql(&format!(
            "SELECT endpoint.key FROM peyk.endpoint JOIN peyk.app ON app.key = endpoint.app
             WHERE app.uid = '{app}' AND endpoint.uid = 'e'"
        ));
        let Partition(place) = Partition::of(EndpointKey(key.parse().unwrap()));
        let owner = self.sql(&format!("SELECT owner FROM peyk.partition WHERE id = {place}"));
        self.nodes.iter().position(|node| node_id(node) == owner)
    }
}

/// Which node a server is.
pub(super) fn node_id(server: &Server) -> String {
    std::fs::read_to_string(server.dir().join("data/node")).unwrap()
}
