//! Questions that are asked together: while statements are on their way, what is asked meanwhile
//! waits, and goes out in one with all that waits.
//!
//! No artificial wait: a question that comes alone goes alone, at once.
//! Never: answer from a statement that began before the question was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::fault::unavailable;
use crate::{Reply, StoreError};

/// Statements on their way at once.
pub(super) const ASKING_MAX: usize = 2;

type Answer<A> = oneshot::Sender<Result<A, StoreError>>;

/// Asks them in one statement; an answer for each, in their order.
type Ask<Q, A> = dyn Fn(Vec<Q>) -> Reply<'static, Vec<A>> + Send + Sync;

/// Questions of one kind.
pub(super) struct Gather<Q, A>(Arc<Inner<Q, A>>);

struct Inner<Q, A> {
    ask: Box<Ask<Q, A>>,
    /// Questions in one statement.
    together_max: usize,
    waiting: Mutex<Waiting<Q, A>>,
}

struct Waiting<Q, A> {
    questions: VecDeque<(Q, Answer<A>)>,
    asking: usize,
}

impl<Q: Send + 'static, A: Send + 'static> Gather<Q, A> {
    pub(super) fn new(
        together_max: usize,
        ask: impl Fn(Vec<Q>) -> Reply<'static, Vec<A>> + Send + Sync + 'static,
    ) -> Self {
        let waiting = Mutex::new(Waiting { questions: VecDeque::new(), asking: 0 });
        Self(Arc::new(Inner { ask: Box::new(ask), together_max, waiting }))
    }

    pub(super) fn ask(&self, question: Q) -> Reply<'static, A> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let (answer, wait) = oneshot::channel();
            if inner.queue(question, answer) {
                tokio::spawn(inner.run());
            }
            wait.await.unwrap_or_else(|_| Err(unavailable("the question was not asked")))
        })
    }
}

impl<Q, A> Inner<Q, A> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<Q, A>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody more is to ask.
    fn queue(&self, question: Q, answer: Answer<A>) -> bool {
        let mut waiting = self.waiting();
        waiting.questions.push_back((question, answer));
        let more = waiting.asking < ASKING_MAX;
        waiting.asking += usize::from(more);
        more
    }

    /// What goes out in one statement; nothing when all was asked.
    fn next(&self) -> (Vec<Q>, Vec<Answer<A>>) {
        let mut waiting = self.waiting();
        if waiting.questions.is_empty() {
            waiting.asking -= 1;
        }
        let count = waiting.questions.len().min(self.together_max);
        waiting.questions.drain(..count).unzip()
    }

    /// Asks until nothing waits.
    async fn run(self: Arc<Self>) {
        loop {
            let (questions, answers) = self.next();
            if questions.is_empty() {
                return;
            }
            match (self.ask)(questions).await {
                Ok(found) => {
                    for (answer, found) in answers.into_iter().zip(found) {
                        let _gone = answer.send(Ok(found));
                    }
                }
                Err(fault) => {
                    for answer in answers {
                        let _gone = answer.send(Err(fault.clone()));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// How many were asked together, each time.
    type Sizes = Arc<Mutex<Vec<usize>>>;

    /// Doubles numbers, once it may; what was asked together is written down.
    fn doubling(together_max: usize) -> (Gather<u32, u32>, Arc<Semaphore>, Sizes) {
        let (may, seen) = (Arc::new(Semaphore::new(0)), Sizes::default());
        let (turn, sizes) = (Arc::clone(&may), Arc::clone(&seen));
        let gather = Gather::new(together_max, move |questions: Vec<u32>| {
            sizes.lock().unwrap().push(questions.len());
            let turn = Arc::clone(&turn);
            Box::pin(async move {
                turn.acquire().await.unwrap().forget();
                if questions.contains(&13) {
                    return Err(StoreError::Overloaded);
                }
                Ok(questions.into_iter().map(|question| question * 2).collect())
            })
        });
        (gather, may, seen)
    }

    #[tokio::test]
    async fn what_is_asked_while_statements_are_out_goes_together_and_each_has_its_answer() {
        let (gather, may, seen) = doubling(3);
        let asked: Vec<_> = (0..8).map(|n| tokio::spawn(gather.ask(n))).collect();
        while seen.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        may.add_permits(100);
        for (n, answer) in (0..8).zip(asked) {
            assert_eq!(answer.await.unwrap(), Ok(n * 2));
        }
        assert_eq!(seen.lock().unwrap().iter().sum::<usize>(), 8);
        assert!(seen.lock().unwrap().iter().all(|size| *size <= 3), "{seen:?}");
        assert!(seen.lock().unwrap().len() <= 4, "{seen:?}");
        assert_eq!(gather.ask(20).await, Ok(40), "alone, at once");
        assert_eq!(gather.0.waiting().asking, 0);
    }

    #[tokio::test]
    async fn a_fault_is_told_to_all_who_asked_and_to_nobody_later() {
        let (gather, may, _) = doubling(8);
        may.add_permits(100);
        assert_eq!(gather.ask(13).await, Err(StoreError::Overloaded));
        assert_eq!(gather.ask(1).await, Ok(2));
    }
}
