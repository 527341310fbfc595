//! The real `peyk`, started on a scratch directory, and a client of its API.
//!
//! Never: reach into the process; only its arguments, environment, output and signals.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

pub(crate) const PEYK: &str = env!("CARGO_BIN_EXE_peyk");
const SECRET: &str = "the secret of the integration tests";

/// Settings that make a test quick; later pairs win.
const QUICK: [(&str, &str); 7] = [
    ("PEYK_LISTEN_ADDRESS", "127.0.0.1:0"),
    ("PEYK_JWT_SECRET", SECRET),
    ("PEYK_ALLOWED_TARGETS", "127.0.0.0/8"),
    ("PEYK_RETRY__STRATEGY", "fixed"),
    ("PEYK_RETRY__BASE", "50ms"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "3"),
    ("PEYK_LOG__LEVEL", "info"),
];

/// A server that runs, and a token for it.
pub(crate) struct Server {
    child: Mutex<Option<Child>>,
    dir: tempfile::TempDir,
    settings: Vec<(String, String)>,
    /// Said to the shell before it becomes the server.
    before: &'static str,
    address: String,
    pub(crate) token: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer of the API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|fault| panic!("{fault}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, if the status is this one.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

/// A `peyk` command in a directory of its own, without settings of whoever runs the tests.
pub(crate) fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PEYK);
    command.args(arguments).current_dir(dir).env_clear().env("PEYK_DATA_DIR", dir.join("data"));
    // A port of its own, so that tests go on side by side.
    command.env("PEYK_LISTEN_ADDRESS", "127.0.0.1:0");
    command
}

/// What `check-config` says of a setting that it refuses.
pub(crate) fn refused_setting(name: &str, value: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), &["check-config"]).env(name, value).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{name}={value}: {said}");
    said
}

impl Server {
    /// Starts one with quick retries.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts one with these settings.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        Self::after("", settings).await
    }

    /// Starts one from a shell that was told `before` first.
    pub(crate) async fn after(before: &'static str, settings: &[(&str, &str)]) -> Self {
        let pairs = QUICK.iter().chain(settings);
        let mut server = Self {
            child: Mutex::default(),
            dir: tempfile::tempdir().unwrap(),
            settings: pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            before,
            address: String::new(),
            token: String::new(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        };
        server.token = server.made_token(&[]);
        server.run();
        server
    }

    /// A command with its settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.dir.path(), arguments);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What `peyk token` prints.
    pub(crate) fn made_token(&self, arguments: &[&str]) -> String {
        let arguments: Vec<_> = ["token"].iter().chain(arguments).copied().collect();
        let output = self.command(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "the token and nothing else");
        text.trim().to_owned()
    }

    fn run(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .unwrap();
        let mut command = self.command(&["serve"]);
        if !self.before.is_empty() {
            let script = format!("{}; exec \"$0\" serve", self.before);
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &script, PEYK]).current_dir(self.dir.path()).env_clear();
            let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
            shell.envs(set);
            command = shell;
        }
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        self.address = address.unwrap_or_else(|| panic!("{line:?}: {}", self.log())).to_owned();
        *self.child.get_mut().unwrap() = Some(child);
    }

    /// Everything it logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Changes a setting for the next start.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a setting back for the next start.
    pub(crate) fn unset(&mut self, name: &str) {
        self.settings.retain(|(set, _)| set != name);
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.lock().unwrap().as_ref().unwrap().id()
    }

    /// Kills it as the system would.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.get_mut().unwrap().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Kills it as the system would, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.run();
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.child.get_mut().unwrap().take().unwrap().wait().unwrap().code()
    }

    /// The status with which it ended by itself, if it did.
    pub(crate) fn ended(&self) -> Option<Option<i32>> {
        let status = self.child.lock().unwrap().as_mut().unwrap().try_wait().unwrap();
        status.map(|status| status.code())
    }

    /// Starts it again after [`Server::stop`] or [`Server::kill`].
    pub(crate) fn start_again(&mut self) {
        self.run();
    }

    /// Any request below `/api/v1`.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_send(method, path, headers, body).await.unwrap()
    }

    /// The same; `None` when the server went away instead of answering.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Option<Answer> {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("http://{}{path}", self.address));
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.client.request(request).await.ok()?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// GET of anything.
    pub(crate) async fn fetch(&self, url: &str) -> Answer {
        let request = Request::builder().uri(url).body(Full::new(Bytes::new())).unwrap();
        let (parts, body) = self.client.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("/api/v1{path}"), &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", &format!("/api/v1{path}"), &[], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", &format!("/api/v1{path}"), &[], body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", &format!("/api/v1{path}"), &[], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", &format!("/api/v1{path}"), &[], "").await
    }

    /// An application with this uid and one endpoint `e` at `url`; further fields of the endpoint
    /// beside it.
    pub(crate) async fn app_with(&self, uid: &str, url: &str, fields: Value) {
        let app = serde_json::json!({"name": uid, "uid": uid});
        self.post("/app", &app).await.expect(201);
        let mut endpoint = fields;
        endpoint["url"] = url.into();
        endpoint["uid"] = "e".into();
        self.post(&format!("/app/{uid}/endpoint"), &endpoint).await.expect(201);
    }

    /// Posts a message and gives its id.
    pub(crate) async fn message(&self, app: &str, payload: Value) -> String {
        let message = serde_json::json!({"eventType": "test.event", "payload": payload});
        let made = self.post(&format!("/app/{app}/msg"), &message).await.expect(202);
        made["id"].as_str().unwrap().to_owned()
    }

    /// All attempts of a message, oldest first.
    pub(crate) async fn attempts(&self, app: &str, message: &str) -> Vec<Value> {
        let list = self.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
        let mut rows = list["data"].as_array().unwrap().clone();
        rows.reverse();
        rows
    }

    /// The dead letters of an application.
    pub(crate) async fn dead_letters(&self, app: &str) -> Vec<Value> {
        let list = self.get(&format!("/app/{app}/dead-letter")).await.expect(200);
        list["data"].as_array().unwrap().clone()
    }

    /// Waits until a message has so many attempts.
    pub(crate) async fn wait_attempts(&self, app: &str, message: &str, count: usize) -> Vec<Value> {
        super::until("attempts", || async move {
            let rows = self.attempts(app, message).await;
            (rows.len() >= count).then_some(rows)
        })
        .await
    }

    /// Posts so many messages with the payloads `{"n":…}`, some at once, and gives their ids.
    pub(crate) async fn messages(&self, app: &str, count: usize) -> Vec<String> {
        let posts = (0..count).map(|n| self.message(app, serde_json::json!({"n": n})));
        futures_util::stream::iter(posts).buffered(50).collect().await
    }

    /// Waits until each of these was answered 2xx.
    pub(crate) async fn wait_delivered(&self, app: &str, messages: &[String]) {
        for message in messages {
            super::until("a delivery", || async move {
                let rows = self.attempts(app, message).await;
                rows.iter().any(|row| row["status"] == 0).then_some(())
            })
            .await;
        }
    }

    /// What `GET …/breaker` says of endpoint `e`.
    pub(crate) async fn breaker(&self, app: &str) -> Value {
        self.get(&format!("/app/{app}/endpoint/e/breaker")).await.expect(200)
    }

    /// Waits until the breaker of endpoint `e` is in this state.
    pub(crate) async fn wait_breaker(&self, app: &str, state: &str) -> Value {
        super::until("a state of the breaker", || async move {
            let breaker = self.breaker(app).await;
            (breaker["state"] == state).then_some(breaker)
        })
        .await
    }

    /// Forces the breaker of endpoint `e`, or gives it back to itself.
    pub(crate) async fn force(&self, app: &str, state: &str) {
        let path = format!("/app/{app}/endpoint/e/breaker");
        self.post(&path, &serde_json::json!({"state": state})).await.expect(200);
    }

    /// Waits until nothing waits for endpoint `e`.
    pub(crate) async fn wait_idle(&self, app: &str) {
        super::until("an empty queue", || async move {
            (self.breaker(app).await["waiting"] == 0).then_some(())
        })
        .await;
    }

    /// The value of a metric; 0 when it has none.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let page = self.send("GET", "/metrics", &[], "").await.text();
        let line = page.lines().find(|line| line.split(' ').next() == Some(name));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// Waits until an application has so many dead letters.
    pub(crate) async fn wait_dead(&self, app: &str, count: usize) -> Vec<Value> {
        super::until("dead letters", || async move {
            let rows = self.dead_letters(app).await;
            (rows.len() == count).then_some(rows)
        })
        .await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.get_mut().unwrap().take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
        if std::thread::panicking() {
            // The test's output is where somebody will look.
            eprintln!("{}", self.log());
        }
    }
}
