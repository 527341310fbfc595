//! What other nodes tell this one: read when a notification comes, and each 250 ms whether one came
//! or not.
//!
//! Notifications come on a connection of their own, which may lead around a pooler. One that is
//! lost costs time and nothing else.
//! Never: trust a notification to come.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Config, Socket};

use super::fault::Fault;
use super::link::{Pool, connect};
use super::node::{CHANNEL, MOVED};
use super::shared::Shared;
use super::wake;

/// Without a notification it is read so often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Reads begin so far apart: what is told meanwhile is read together. The first one is not kept
/// waiting.
const LOOKS_APART: Duration = Duration::from_millis(5);
/// A read that takes longer is given up with its connection.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// A connection that ended, or could not be made, is made again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// Reads until the store closes; `told` says that there is something.
pub(super) async fn read(
    shared: Arc<Shared>,
    pool: Pool,
    told: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) {
    let mut not_before = Instant::now();
    loop {
        tokio::select! {
            () = told.notified() => {}
            () = sleep(LOOK_EVERY) => {}
            () = stopped(&mut stop) => return,
        }
        sleep_until(not_before).await;
        not_before = Instant::now() + LOOKS_APART;
        let Some(commits) = shared.commits.get() else { continue };
        match timeout(LOOK_MAX, look(&shared, &pool)).await {
            Ok(Ok(wakes)) => wake::tell(&**commits, wakes),
            // The keeper says in the log that the database is away.
            Ok(Err(_)) | Err(_) => sleep(LOOK_EVERY).await,
        }
    }
}

/// Waits until the store closes.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn look(shared: &Shared, pool: &Pool) -> Result<Vec<wake::Wake>, Fault> {
    let conn = connect(pool).await?;
    let read = wake::read(&conn, shared.me, shared.share.owned()).await;
    if read.is_err() {
        conn.end();
    }
    read
}

/// Where a notification goes.
#[derive(Clone)]
pub(super) struct Ears {
    /// There is something to read.
    pub(super) told: Arc<Notify>,
    /// Somebody came, went, or gave something away.
    pub(super) moved: Arc<Notify>,
}

/// Listens until the store closes.
pub(super) async fn listen<T>(
    shared: Arc<Shared>,
    (config, tls): (Config, T),
    ears: Ears,
    mut stop: watch::Receiver<bool>,
) where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let mut told = false;
    loop {
        let hears = hear(&shared, (&config, tls.clone()), &ears, &mut told);
        tokio::select! {
            fault = hears => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(?fault, "notifications of the database are not heard; trying again");
                }
            }
            () = stopped(&mut stop) => return,
        }
        tokio::select! {
            () = sleep(AGAIN) => {}
            () = stopped(&mut stop) => return,
        }
    }
}

/// Hears until the connection ends.
async fn hear<T>(
    shared: &Shared,
    (config, tls): (&Config, T),
    ears: &Ears,
    told: &mut bool,
) -> Result<(), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send,
{
    let (client, mut conn) = config.connect(tls).await?;
    let listen = format!("LISTEN {CHANNEL}");
    let asked = client.batch_execute(&listen);
    tokio::pin!(asked);
    let mut heard = false;
    loop {
        tokio::select! {
            biased;
            done = &mut asked, if !heard => {
                done?;
                heard = true;
                if std::mem::take(told) {
                    tracing::info!("notifications of the database are heard again");
                }
                // What was told before it listened.
                ears.told.notify_one();
                ears.moved.notify_one();
            }
            message = poll_fn(|context| conn.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(note))) => take(shared, ears, note.payload()),
                Some(Ok(_)) => {}
                Some(Err(fault)) => return Err(fault),
                None => return Ok(()),
            },
        }
    }
}

fn take(shared: &Shared, ears: &Ears, text: &str) {
    if text == MOVED {
        ears.moved.notify_one();
    } else if wake::concerns(text, shared.share.owned()) {
        ears.told.notify_one();
    }
}
