//! The frame of a POST that may be sent again: one effect and one answer for one key.
//!
//! In: who asks, what was received, what the path leads to by inner number, and the work. Out: the
//! answer of the work, or the first one's. The work hands its ticket to the write that is its
//! effect, so that both are stored as one. A key belongs to the thing and not to its name: under
//! the name of a deleted one a repeat begins anew, and so it does when what it made is gone.
//! Never: answer with what is no longer there.

use std::sync::Arc;

use axum::response::Response;

use crate::http::extract::Received;
use crate::http::idempotency::{Answer, Asked, Done, Made, Read, Ticket};
use crate::http::problem::Problem;
use crate::http::tokens::Caller;
use crate::state::Shared;

/// Does `work`, unless this request was answered before under its key.
pub(super) async fn once<F>(
    shared: &Arc<Shared>,
    asker: (&Caller, &Received),
    place: &[u64],
    work: impl FnOnce(Ticket) -> F + Send + 'static,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Done, Problem>> + Send + 'static,
{
    once_read(shared, asker, place, Box::new(Some), work).await
}

/// The same, where a stored answer is to be read before it is given again.
pub(super) async fn once_read<F>(
    shared: &Arc<Shared>,
    (caller, received): (&Caller, &Received),
    place: &[u64],
    read: Read,
    work: impl FnOnce(Ticket) -> F + Send + 'static,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Done, Problem>> + Send + 'static,
{
    let Some(key) = received.ingest_key(caller, place)? else {
        return work(Ticket::none()).await.map(Done::into_response);
    };
    let peyk = Arc::clone(shared);
    let stands = async move |made| is_there(&peyk, made).await;
    let recall = Arc::clone(&shared.engine.stores().recall);
    let asked = Asked { key, now: shared.now(), recall, read };
    shared.answers.once(asked, stands, work).await.map(Answer::into_response)
}

/// Whether what an answer tells of is still there.
async fn is_there(shared: &Shared, made: Made) -> Result<bool, Problem> {
    let directory = &shared.engine.stores().directory;
    Ok(match made {
        Made::Nothing => true,
        Made::Application(key) => directory.app_by_key(key).await?.is_some(),
        Made::Endpoint(key) => directory.endpoint(key).await?.is_some(),
        Made::EventType { org, name, created_at } => {
            let found = directory.event_type(org, name).await?;
            found.is_some_and(|found| !found.archived && found.created_at == created_at)
        }
    })
}
