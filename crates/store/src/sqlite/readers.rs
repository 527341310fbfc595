//! Reads: a few connections on threads of their own, each read short.
//!
//! A read sees every commit that was answered before it began. One closure is one page; it opens a
//! snapshot only if it reads twice.
//! Never: hold a snapshot between two reads, or write.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::migrate::open_reader;
use crate::stored::fault::closed;
use crate::{Reply, StoreError};

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Reads that may wait; beyond it they are refused.
const WAITING_MAX: usize = 10_000;

/// The pool.
pub(super) struct Readers {
    reads: Mutex<Option<Sender<Read>>>,
    waiting: Arc<AtomicUsize>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    pub(super) fn open(path: &Path, number: usize, cache_kib: u32) -> Result<Self, StoreError> {
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::new();
        for _ in 0..number.max(1) {
            let conn = open_reader(path, cache_kib)?;
            let reads = Arc::clone(&receiver);
            let thread =
                Builder::new().name("peyk-read".into()).spawn(move || serve(&conn, &reads));
            threads.push(thread.map_err(|_| no_thread())?);
        }
        Ok(Self {
            reads: Mutex::new(Some(sender)),
            waiting: Arc::default(),
            threads: Mutex::new(threads),
        })
    }

    /// Runs `read` on a free connection.
    pub(super) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'static, T> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.send(move |conn| {
            if !sender.is_closed() {
                drop(sender.send(read(conn)));
            }
        });
        Box::pin(async move {
            sent?;
            receiver.await.unwrap_or_else(|_| Err(closed()))
        })
    }

    fn send(&self, read: impl FnOnce(&Connection) + Send + 'static) -> Result<(), StoreError> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(StoreError::Overloaded);
        }
        let waiting = Arc::clone(&self.waiting);
        let read: Read = Box::new(move |conn| {
            waiting.fetch_sub(1, Ordering::Relaxed);
            read(conn);
        });
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = reads.as_ref() else { return Err(closed()) };
        sender.send(read).map_err(|_| closed())
    }

    /// Finishes the reads that wait and ends the threads.
    pub(super) fn close(&self) {
        drop(self.reads.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            join(thread);
        }
    }
}

/// Joins a thread, unless it is the one that asks: a store may be dropped by its own last job.
pub(super) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
        tracing::error!("a thread of the store ended by a panic");
    }
}

pub(super) fn no_thread() -> StoreError {
    StoreError::Unavailable("a thread could not be started".into())
}

fn serve(conn: &Connection, reads: &Mutex<Receiver<Read>>) {
    loop {
        let read = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = read else { return };
        read(conn);
    }
}
