//! What `deploy` holds for Kubernetes and Compose, against the program: settings, ports, paths of
//! probes, and times.
//!
//! Never: an image built, or a cluster.

use std::time::Duration;

use serde_json::Value;
use testparts::Postgres;

use crate::support::Server;
use crate::support::server::command;

const KUBERNETES: &str = include_str!("../../../../deploy/kubernetes.yaml");
const COMPOSE: &str = include_str!("../../../../deploy/compose.yaml");
const DOCKERFILE: &str = include_str!("../../../../deploy/Dockerfile");

/// Answers that were begun when a server is told to stop, what is in flight to endpoints of a node,
/// and the commit of its results, take at most so long.
const DRAIN_MAX: Duration = Duration::from_secs(10 + 2 + 10);

fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
}

fn set() -> Value {
    let mut all = documents(KUBERNETES).into_iter();
    all.find(|one| one["kind"] == "StatefulSet").unwrap()
}

/// Names that are taken as settings, with values that will do for secrets and the database.
fn checked(names: impl IntoIterator<Item = (String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut check = command(dir.path(), &["check-config"]);
    for (name, value) in names {
        let value = match name.as_str() {
            "PEYK_JWT_SECRET" => "a secret of sixteen characters",
            "PEYK_MAIN_KEY" => "a key of sixteen characters and more",
            _ => &value,
        };
        check.env(name, value);
    }
    let output = check.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

#[test]
fn what_kubernetes_and_compose_set_are_settings() {
    let set = set();
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    let own = container["env"].as_array().unwrap().iter();
    // What the cluster fills in is no setting by itself.
    let own = own.filter(|one| one["valueFrom"].is_null()).map(|one| {
        let text = |name: &str| one[name].as_str().unwrap().replace("$(POD_IP)", "10.0.0.7");
        (text("name"), text("value"))
    });
    // What its first lines put into the secret.
    let secret = KUBERNETES.lines().filter(|line| line.starts_with('#')).flat_map(|line| {
        let names = line.split("--from-literal=").skip(1);
        names.map(|pair| pair.split('=').next().unwrap().to_owned())
    });
    let secret: Vec<String> = secret.collect();
    assert_eq!(secret.len(), 3, "{secret:?}");
    let url = "postgres://peyk@db/peyk".to_owned();
    checked(secret.into_iter().map(|name| (name, url.clone())).chain(own));

    let compose = documents(COMPOSE).remove(0);
    let set = compose["x-node"]["environment"].as_object().unwrap();
    checked(set.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())));

    let set = DOCKERFILE.split_whitespace().filter(|word| word.starts_with("PEYK_"));
    let pairs = set.map(|word| word.split_once('=').unwrap());
    checked(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn a_misspelt_setting_would_be_found() {
    let misspelt = [("PEYK_DATABASE_WAITS".to_owned(), "5m".to_owned())];
    assert!(std::panic::catch_unwind(|| checked(misspelt)).is_err());
}

#[tokio::test]
async fn probes_ask_paths_that_the_program_answers_on_the_port_it_listens_on() {
    let url = Postgres::shared().fresh_database();
    let server = Server::with(&[("PEYK_DATABASE_URL", &url)]).await;
    let set = set();
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    let probes = ["startupProbe", "livenessProbe", "readinessProbe"];
    for probe in probes {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["port"], "http");
        let status = server.send("GET", asked["path"].as_str().unwrap(), &[], "").await.status;
        assert!([200, 204].contains(&status), "{probe}: {status}");
    }
    // Whoever is alive without its database is not ended for that, and not asked meanwhile.
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/api/v1/health/ping");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/api/v1/health");

    let port = &container["ports"][0];
    assert_eq!((&port["name"], &port["containerPort"]), (&"http".into(), &8071.into()));
    assert!(DOCKERFILE.contains("PEYK_LISTEN_ADDRESS=0.0.0.0:8071"));
    for service in documents(KUBERNETES).iter().filter(|one| one["kind"] == "Service") {
        assert_eq!(service["spec"]["ports"][0]["targetPort"], "http");
        assert_eq!(service["spec"]["selector"], set["spec"]["selector"]["matchLabels"]);
    }
}

#[test]
fn three_nodes_are_replaced_one_by_one_and_have_time_to_end() {
    let set = set();
    assert_eq!(set["spec"]["replicas"], 3);
    let claims = &set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"];
    let spec = &set["spec"]["template"]["spec"];
    assert_eq!(&spec["containers"][0]["volumeMounts"][0]["name"], claims, "each its own directory");
    let grace = Duration::from_secs(spec["terminationGracePeriodSeconds"].as_u64().unwrap());
    assert!(grace > DRAIN_MAX, "{grace:?}");
    let budget = documents(KUBERNETES);
    let budget = budget.iter().find(|one| one["kind"] == "PodDisruptionBudget").unwrap();
    assert_eq!(budget["spec"]["maxUnavailable"], 1);

    let compose = documents(COMPOSE).remove(0);
    let grace = compose["x-node"]["stop_grace_period"].as_str().unwrap();
    assert!(seconds(grace) > DRAIN_MAX, "{grace}");
    let services = compose["services"].as_object().unwrap();
    let nodes: Vec<_> = services.keys().filter(|name| name.starts_with("node-")).collect();
    assert_eq!(nodes.len(), 3);
    let balancer = services["balancer"]["command"].as_str().unwrap();
    for node in nodes {
        assert!(balancer.contains(&format!("--to {node}:8071")), "{balancer}");
    }
}
