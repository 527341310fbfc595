//! Several nodes, and a database that fails over, is full, or ends their sessions.
//!
//! Never: a message lost after its 202, or a node that its operator has to start again.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testparts::Postgres;
use tokio::sync::watch;
use tokio::time::Instant;

use super::PATIENT;
use super::fleet::Fleet;
use super::load::{all_arrived, load, six_apps};
use crate::support::{PATIENCE, Receiver, Server, until};

/// Results that a node may hold unrecorded, and sends it may have in flight, for six endpoints.
const REPEATS_MAX: usize = 6 * 64 + 64;

/// Waits until a node takes a message for each application again.
async fn takes_again(node: &Server, apps: &[String]) -> Vec<String> {
    let mut ids = Vec::new();
    for app in apps {
        let message = json!({"eventType": "t", "payload": {"n": 0}});
        let id = until("an acknowledgement", || async {
            let answer = node.post(&format!("/app/{app}/msg"), &message).await;
            if answer.status == 202 {
                return Some(answer.json()["id"].as_str().unwrap().to_owned());
            }
            assert_eq!(answer.expect(503)["code"], "storage_unavailable");
            None
        });
        ids.push(id.await);
    }
    ids
}

#[tokio::test]
async fn db_04_a_standby_is_promoted_under_load_and_the_nodes_go_on_by_themselves() {
    fail_over(&[]).await;
}

/// A primary is killed under load, and its standby promoted, which runs with `environment`.
pub(super) async fn fail_over(environment: &[(&str, &str)]) {
    let mut primary = Postgres::start();
    let standby = primary.start_synchronous_standby(environment);
    let one = primary.fresh_database();
    let name = one.rsplit('/').next().unwrap();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let both = format!("postgres://postgres@{hosts}/{name}");
    let mut fleet = Fleet::at(both, Some(standby), (3, &PATIENT)).await;
    let receiver = Receiver::start().await;
    let apps = six_apps(&fleet, &receiver).await;
    let members = fleet.members();
    let nodes: Vec<&Server> = fleet.nodes.iter().collect();
    let (stop, stopped) = watch::channel(false);
    let fails_over = async {
        receiver.wait_for(200).await;
        primary.kill();
        let killed = Instant::now();
        fleet.postgres.as_ref().unwrap().promote();
        let promoted = killed.elapsed();
        let sent = receiver.hits().len();
        receiver.wait_for(sent + 100).await;
        stop.send(true).unwrap();
        (killed.elapsed(), promoted)
    };
    let (mut acknowledged, (gap, promoted)) =
        tokio::join!(load(&nodes, &apps, stopped), fails_over);
    for node in &nodes {
        acknowledged.extend(takes_again(node, &apps).await);
    }
    let repeated = all_arrived(&acknowledged, (nodes[0], &apps), &receiver).await;
    eprintln!(
        "acknowledged {}, sent again {repeated}; promoted after {promoted:?}, 100 more sent after \
         {gap:?}",
        acknowledged.len()
    );
    assert!(repeated <= REPEATS_MAX * 3, "{repeated} were sent again");
    assert_eq!(fleet.members(), members, "the same nodes");
    assert!(fleet.nodes.iter().all(|node| node.ended().is_none()));
    fleet.nodes.truncate(2);
    // What is left goes on as any fleet does: a silent node is found on the new primary, too.
    fleet.wait_even().await;
}

#[tokio::test]
async fn sessions_of_a_node_that_are_ended_again_and_again_cost_it_nothing_but_repeats() {
    let mut fleet = Fleet::start(2, &PATIENT).await;
    let own = format!("{}?application_name=third", fleet.url);
    fleet.join_as(&[("PEYK_DATABASE_URL", &own)]).await;
    fleet.wait_even().await;
    let receiver = Receiver::start().await;
    let apps = six_apps(&fleet, &receiver).await;
    let members = fleet.members();
    let nodes: Vec<&Server> = fleet.nodes.iter().collect();
    let (stop, stopped) = watch::channel(false);
    let ends = async {
        let (mut ended, mut longest) = (0, std::time::Duration::ZERO);
        for round in 1..=5 {
            receiver.wait_for(round * 100).await;
            let terminate = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
                             FROM pg_stat_activity WHERE application_name = 'third'";
            ended += fleet.sql(terminate).parse::<usize>().unwrap();
            let since = Instant::now();
            takes_again(&fleet.nodes[2], &apps).await;
            longest = longest.max(since.elapsed());
        }
        stop.send(true).unwrap();
        (ended, longest)
    };
    let (acknowledged, (ended, longest)) = tokio::join!(load(&nodes, &apps, stopped), ends);
    let repeated = all_arrived(&acknowledged, (nodes[0], &apps), &receiver).await;
    println!(
        "ended {ended} sessions; six posts taken again after {longest:?}, sent again {repeated}"
    );
    assert!(ended >= 5 * 4, "writer, keeper, wakes and notifications, each time: {ended}");
    assert!(longest < PATIENCE / 10, "{longest:?}");
    assert!(repeated <= REPEATS_MAX, "{repeated} were sent again");
    assert_eq!(fleet.members(), members, "nobody was replaced");
    assert!(fleet.nodes.iter().all(|node| node.ended().is_none()));
}

/// A small file system, until this is dropped.
struct Small(PathBuf);

impl Small {
    /// Needs rights that most users do not have.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let options = format!("size={size},mode=1777");
        let mount = ["-t", "tmpfs", "-o", &options, "tmpfs", path.to_str().unwrap()];
        let mounted = Command::new("mount").args(mount).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(path.to_owned()))
    }

    /// Takes what room there is, but for so many bytes.
    fn fill(&self, leave: u64) -> PathBuf {
        let filler = self.0.join("filler");
        let _full = std::fs::write(&filler, vec![0; 64 << 20]);
        let length = std::fs::metadata(&filler).unwrap().len();
        std::fs::File::options()
            .write(true)
            .open(&filler)
            .unwrap()
            .set_len(length - leave)
            .unwrap();
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Posts to nodes in turn until each has refused so many; what was acknowledged.
async fn post_until_full(nodes: &[Server], app: &str) -> Vec<String> {
    let (mut acknowledged, mut refused) = (Vec::new(), vec![0; nodes.len()]);
    let large = json!({"eventType": "t", "payload": {"n": 0, "filling": noise(100_000)}});
    for _ in 0..5_000 {
        for (n, node) in nodes.iter().enumerate() {
            let answer = node.post(&format!("/app/{app}/msg"), &large).await;
            if answer.status == 202 {
                acknowledged.push(answer.json()["id"].as_str().unwrap().to_owned());
                continue;
            }
            assert_eq!(answer.expect(503)["code"], "storage_unavailable");
            refused[n] += 1;
        }
        if refused.iter().all(|count| *count >= 10) {
            return acknowledged;
        }
    }
    panic!("the disk of the database was never full: {refused:?}");
}

/// Text that does not compress.
fn noise(length: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

#[tokio::test]
async fn du_20_a_full_disk_of_the_database_refuses_posts_and_loses_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let Some(small) = Small::mount(&scratch.path().join("small"), "192m") else {
        println!("skipped: only root may mount a small file system");
        return;
    };
    let postgres = Postgres::start_in(&small.0);
    let mut fleet = Fleet::on(Some(postgres), 2, &PATIENT).await;
    let receiver = Receiver::start().await;
    let apps = six_apps(&fleet, &receiver).await;
    let members = fleet.members();
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        let filler = small.fill(256 << 10);
        let taken = post_until_full(&fleet.nodes, &apps[round]).await;
        println!("taken until the disk was full: {}", taken.len());
        acknowledged.extend(taken);
        let mut health = Vec::new();
        for node in &fleet.nodes {
            health.push(node.get("/health").await.status);
        }
        println!("health while it is full: {health:?}");
        std::fs::remove_file(filler).unwrap();
        let server = fleet.postgres.as_mut().unwrap();
        if health.contains(&503) || !server.runs() {
            // Without room for its log it ends, or tries in vain to start: whoever makes room
            // starts it again.
            println!("PostgreSQL is started again");
            server.restart();
        }
        for node in &fleet.nodes {
            acknowledged.extend(takes_again(node, &apps).await);
        }
    }
    let repeated = all_arrived(&acknowledged, (&fleet.nodes[0], &apps), &receiver).await;
    println!("acknowledged {}, sent again {repeated}", acknowledged.len());
    assert!(repeated <= REPEATS_MAX * 2 * 2, "{repeated} were sent again");
    assert_eq!(fleet.members(), members, "the same nodes");
    assert!(fleet.nodes.iter().all(|node| node.ended().is_none()));
}
