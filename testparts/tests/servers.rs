//! The servers themselves: up, paused, gone, back, and gone with whoever started them.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use testparts::{Postgres, Redis};

/// What Redis answers to `command`; nothing if it does not within `limit`.
fn ask(redis: &Redis, command: &str, limit: Duration) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
    let mut answer = [0; 64];
    let bytes = stream.read(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..bytes]).trim_end().to_owned())
}

const SOON: Duration = Duration::from_secs(10);

#[test]
fn redis_stops_pauses_and_comes_back() {
    let mut redis = Redis::start();
    let other = Redis::start();
    assert_ne!(redis.port(), other.port());
    assert_eq!(ask(&redis, "PING", SOON).unwrap(), "+PONG");
    redis.pause();
    assert_eq!(ask(&redis, "PING", Duration::from_millis(100)), None, "paused");
    redis.resume();
    assert_eq!(ask(&redis, "SET a 1", SOON).unwrap(), "+OK");
    redis.stop();
    assert_eq!(ask(&redis, "PING", SOON), None, "stopped");
    assert_eq!(ask(&other, "PING", SOON).unwrap(), "+PONG");
    redis.restart();
    assert_eq!(ask(&redis, "EXISTS a", SOON).unwrap(), ":0", "without persistence");
}

#[test]
fn redis_keeps_what_it_is_told_to_keep() {
    let mut redis = Redis::start_with(&[("appendonly", "yes"), ("appendfsync", "always")]);
    assert_eq!(ask(&redis, "SET a 1", SOON).unwrap(), "+OK");
    redis.kill();
    redis.restart();
    assert_eq!(ask(&redis, "EXISTS a", SOON).unwrap(), ":1");
}

#[test]
fn postgres_survives_stop_kill_and_pause() {
    let mut postgres = Postgres::start_with(&[("max_connections", "17")]);
    let (url, other) = (postgres.fresh_database(), postgres.fresh_database());
    assert_ne!(url, other);
    assert_eq!(postgres.sql(&url, "SHOW max_connections"), "17");
    postgres.sql(&url, "CREATE TABLE t AS SELECT 1 AS a");
    postgres.pause();
    postgres.restart();
    assert_eq!(postgres.sql(&url, "SELECT a FROM t"), "1");
    postgres.kill();
    assert!(TcpStream::connect(("127.0.0.1", postgres.port())).is_err());
    postgres.restart();
    assert_eq!(postgres.sql(&url, "SELECT a FROM t"), "1");
}

#[test]
#[should_panic(expected = "PostgreSQL: ")]
fn a_server_that_cannot_start_says_why() {
    let _ = Postgres::start_with(&[("max_connections", "none")]);
}

/// Run by the test below in a process of its own, to be killed.
#[test]
#[ignore = "waits for ever; started by a_server_ends_with_the_process_that_started_it"]
fn owner() {
    // In a script that never ends, Redis does not follow a request to end.
    let redis = Redis::start_with(&[("lua-time-limit", "0")]);
    let busy = "EVAL 'while true do end' 0";
    assert_eq!(ask(&redis, busy, Duration::from_millis(100)), None);
    eprintln!("port={}", redis.port());
    std::thread::park();
}

/// Even if the server does not listen and the signal goes to everything that the process started.
#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--ignored", "--exact", "--nocapture", "owner"]);
    owner.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut owner = owner.process_group(0).spawn().unwrap();
    let lines = BufReader::new(owner.stderr.take().unwrap()).lines().map_while(Result::ok);
    let port = lines.filter_map(|line| line.strip_prefix("port=")?.parse::<u16>().ok()).next();
    let mut stream = TcpStream::connect(("127.0.0.1", port.unwrap())).unwrap();
    kill_process_group(Pid::from_child(&owner), Signal::TERM).unwrap();
    owner.wait().unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    // An end of the stream or a reset, not a timeout.
    let end = stream.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
}
