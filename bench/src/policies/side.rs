//! A side: something that makes a guarded call, alone in a loop or in many tasks at once.
//!
//! Never: know what it calls.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fault::Result;
use crate::heap::allocated;

/// The name of our sides.
pub(super) const OURS: &str = "ours";

/// What is measured; sides of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A breaker that counts failures in a row.
    InARow,
    /// A breaker that counts the share of failures.
    Share,
    /// A retry policy.
    Retry,
    /// A breaker that counts failures in a row inside a retry policy; in ours the answer is
    /// classified, too.
    Stack,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::InARow, Self::Share, Self::Retry, Self::Stack];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::InARow => "breaker, in a row",
            Self::Share => "breaker, share",
            Self::Retry => "retry",
            Self::Stack => "retry and breaker",
        }
    }
}

/// Makes guarded calls that succeed at once. Clones guard with the same policy.
pub(super) trait Caller: Clone + Send + 'static {
    /// One call; 200 when it was made.
    fn call(&mut self) -> impl Future<Output = u16> + Send;
}

/// What a call has cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) ns: f64,
    /// Bytes that it has allocated, where they are counted.
    pub(super) bytes: Option<f64>,
}

type Running<T> = Pin<Box<dyn Future<Output = T>>>;

/// A side and its two loops.
pub(super) struct Side {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    /// So many calls in one task.
    pub(super) alone: Box<dyn Fn(u32) -> Running<Cost>>,
    /// So many tasks with so many calls each: calls a second.
    pub(super) together: Box<dyn Fn(u32, u32) -> Running<Result<f64>>>,
}

impl Side {
    pub(super) fn new(kind: Kind, name: &'static str, caller: impl Caller) -> Self {
        let contender = caller.clone();
        Self {
            kind,
            name,
            alone: Box::new(move |calls| Box::pin(alone(caller.clone(), calls))),
            together: Box::new(move |tasks, each| {
                Box::pin(together(contender.clone(), tasks, each))
            }),
        }
    }
}

async fn alone(mut caller: impl Caller, calls: u32) -> Cost {
    let (before, begun) = (allocated(), Instant::now());
    repeat(&mut caller, calls).await;
    let ns = begun.elapsed().as_secs_f64() * 1e9 / f64::from(calls);
    let bytes = allocated().zip(before).map(|(now, before)| now - before);
    Cost { ns, bytes: bytes.map(|bytes| bytes as f64 / f64::from(calls)) }
}

async fn together(caller: impl Caller, tasks: u32, each: u32) -> Result<f64> {
    let mut running = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..tasks {
        let mut caller = caller.clone();
        running.spawn(async move { repeat(&mut caller, each).await });
    }
    while let Some(ended) = running.join_next().await {
        ended?;
    }
    Ok(f64::from(tasks * each) / begun.elapsed().as_secs_f64())
}

async fn repeat(caller: &mut impl Caller, calls: u32) {
    let mut refused = 0_u32;
    for call in 0..calls {
        refused += u32::from(black_box(caller.call().await) != 200);
        // As tasks that wait for answers take turns.
        if call % 64 == 63 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(refused, 0, "every call of a closed breaker is made");
}
