//! Every suite on every backend.
//!
//! Never: a case of its own; those stand in `store::conformance`.

use crate::backends::{self, Postgres, Sqlite};
use store::conformance::check;

/// One test for each suite.
macro_rules! suites {
    ($backend:ident, $open:expr; $($suite:ident: $cases:expr),* $(,)?) => {
        mod $backend {
            use super::*;
            use store::conformance as of;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $suite() {
                check($cases, $open).await;
            })*
        }
    };
    ($backend:ident, $open:expr) => {
        suites! {
            $backend, $open;
            alerts: of::alerts::CASES,
            inbox: of::inbox::CASES,
            inbox_timed: of::inbox::TIMED,
            queue: of::queue::CASES,
            ledger: of::ledger::CASES,
            ledger_keeps: of::ledger::KEPT,
            ledger_manual: of::ledger::MANUAL,
            directory: of::directory::CASES,
            endpoints: of::directory::ENDPOINTS,
            dead_letters: of::dead_letters::CASES,
            replays: of::dead_letters::REPLAYS,
            history: of::history::CASES,
            attempts: of::history::ATTEMPTS,
            sent: of::history::SENT,
            prune: of::prune::CASES,
            prune_withdrawn: of::prune::WITHDRAWN,
            notices: of::notices::CASES,
            mails: of::notices::MAILS,
            recall: of::recall::CASES,
            recall_changes: of::recall::CHANGES,
            recoveries: of::recoveries::CASES,
            revocations: of::revocations::CASES,
            counts: of::counts::CASES,
            counts_kept: of::counts::KEPT,
            tasks: of::tasks::CASES,
            task_pieces: of::tasks::PIECES,
        }
    };
}

suites!(memory, backends::memory);
suites!(sqlite, Sqlite::open);
suites!(postgres, Postgres::open);
suites!(pooled, Postgres::open_pooled);
