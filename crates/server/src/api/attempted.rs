//! What went where: the messages of an endpoint, the endpoints of a message, and how each delivery
//! stands.
//!
//! A delivery counts from its acceptance on, tried or not.
//! Never: change one.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::ids::{EndpointKey, Kind, MessageKey, PublicId};
use engine::NextSend;
use http::StatusCode;
use store::history::{DeliveryRow, SentFilter, Standing};
use store::page::Direction;

use super::inputs::query::{Destinations, MessagesSent};
use super::messages::{far_end, filter_of};
use super::operation::Operation;
use super::own::{self, Names};
use super::views::sent::{DestinationOut, SentOut, status};
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::paging::{ListOut, Paging};
use crate::http::problem::Problem;
use crate::http::query::{Query, refuse};
use crate::spelling::one_of;
use crate::state::Shared;

type Answered = Result<Response, Problem>;

/// All of them.
pub(super) const STANDINGS: [Standing; 5] = [
    Standing::Delivered,
    Standing::Untried,
    Standing::Dead,
    Standing::Retried,
    Standing::Cancelled,
];

pub(super) const MESSAGES: Operation = Operation::new(
    "v1.message-attempt.list-attempted-messages",
    "Lists the messages to an endpoint and how each delivery stands.",
)
.query::<MessagesSent>()
.gives::<ListOut<SentOut<'_>>>(200);

/// `GET /app/{app}/endpoint/{endpoint}/msg`
pub(super) async fn messages(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    query: Query,
) -> Answered {
    let with_content = query.flag("with_content", true)?;
    let expanded = query.flag("expanded_statuses", false)?;
    let message = filter_of(&query)?;
    let standings = standings(&query, expanded)?;
    let snapshot = own::app(&shared, &caller, &app).await?;
    let to = own::endpoint_of(&snapshot, &endpoint)?;
    let app = snapshot.app.key;
    let seal = shared.iterators.of("messages to", caller.org, &[to.key.0.cast_unsigned()]);
    let paging = Paging::fixed(&query, Direction::Descending, seal)?;
    let paging = paging.with_far_end(far_end(&message));
    let history = &shared.engine.stores().history;
    let is_row = async |id: String| {
        let which = own::id_or_uid(Kind::Message, &id);
        let Some(found) = history.message(app, which).await? else { return Ok(false) };
        let sent = history.deliveries(found.key).await?;
        Ok(sent.iter().any(|sent| sent.endpoint == to.key))
    };
    let key_of = |text: &str| PublicId::parse(Kind::Message, text).map(|id| MessageKey(id.key()));
    let page = paging.page(key_of, is_row).await?;
    let filter = SentFilter { message, standings, payloads: with_content };
    let found = history.messages_to(app, to.key, filter, page).await?;
    let bare = |key: MessageKey| PublicId::new(key.0, [0; 12]).text(Kind::Message);
    let list = paging.look(found, |sent| sent.message.id.text(Kind::Message), bare);
    let next = next_sends(&shared, vec![to.key]).await?[0];
    let to = (&*to, next, shared.now());
    let list = list.view(|sent| SentOut::new(sent, to, (with_content, expanded)));
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

/// Which deliveries are shown with the status that is asked for.
fn standings(query: &Query, expanded: bool) -> Result<Vec<Standing>, Problem> {
    let Some(asked) = query.number::<u8>("status")? else { return Ok(Vec::new()) };
    if asked > 4 {
        return Err(refuse("status", &one_of(&["0", "1", "2", "3", "4"])));
    }
    // `canceled` is always understood as a question.
    let shown = |standing: &Standing| {
        status(*standing, expanded).0 == asked || status(*standing, true).0 == asked
    };
    Ok(STANDINGS.into_iter().filter(shown).collect())
}

pub(super) const DESTINATIONS: Operation = Operation::new(
    "v1.message-attempt.list-attempted-destinations",
    "Lists the endpoints of a message and how each delivery stands.",
)
.query::<Destinations>()
.gives::<ListOut<DestinationOut>>(200);

/// `GET /app/{app}/msg/{message}/endpoint`
pub(super) async fn destinations(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message)): Place<(String, String)>,
    query: Query,
) -> Answered {
    let expanded = query.flag("expanded_statuses", false)?;
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let rows = shared.engine.stores().history.deliveries(message.key).await?;
    let mut all = named(&shared, &app, rows).await?;
    all.sort_unstable_by_key(|to| to.endpoint.id);
    let seal = shared.iterators.of("endpoints of", caller.org, &[message.key.0]);
    let paging = Paging::fixed(&query, Direction::Ascending, seal)?;
    let is_row = async |id: String| {
        let id = PublicId::parse(Kind::Endpoint, &id);
        Ok(all.iter().any(|to| Some(to.endpoint.id) == id))
    };
    let page = paging.page(|text| PublicId::parse(Kind::Endpoint, text), is_row).await?;
    let rows = Paging::cut(&page, all, |to| to.endpoint.id);
    let next = next_sends(&shared, rows.iter().map(|to| to.endpoint.key).collect()).await?;
    let rows = rows.into_iter().zip(next).collect();
    let list = paging.frame(rows, |(to, _): &(Destination, _)| to.endpoint.id.text(Kind::Endpoint));
    let now = shared.now();
    let list = list.map(|(to, next)| {
        let endpoint = (&*to.endpoint, caller.org, next, now);
        DestinationOut::new(endpoint, &to.delivery, (to.deleted, expanded))
    });
    Ok(Answer::json(StatusCode::OK, &list).into_response())
}

/// When what is due at these endpoints may be sent.
async fn next_sends(
    shared: &Shared,
    endpoints: Vec<EndpointKey>,
) -> Result<Vec<NextSend>, Problem> {
    shared.engine.next_sends(endpoints).await.ok_or_else(Problem::overloaded)
}

/// Where a message goes.
pub(super) struct Destination {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) deleted: bool,
    pub(super) delivery: DeliveryRow,
}

/// Names the endpoints of deliveries; those that are not in the application any more were deleted.
pub(super) async fn named(
    shared: &Shared,
    app: &AppSnapshot,
    rows: Vec<DeliveryRow>,
) -> Result<Vec<Destination>, Problem> {
    let live: HashMap<_, _> = app.endpoints.iter().map(|to| (to.key, Arc::clone(to))).collect();
    let gone = rows.iter().map(|row| row.endpoint).filter(|key| !live.contains_key(key)).collect();
    let gone = shared.engine.stores().directory.past_endpoints(gone).await?;
    let gone: HashMap<_, _> = gone.into_iter().map(|to| (to.key, to)).collect();
    let named = rows.into_iter().filter_map(|delivery| {
        let key = delivery.endpoint;
        let (endpoint, deleted) = match live.get(&key) {
            Some(endpoint) => (endpoint, false),
            None => (gone.get(&key)?, true),
        };
        Some(Destination { endpoint: Arc::clone(endpoint), deleted, delivery })
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_asked_for_as_it_is_shown() {
        let ask = |text: &str, expanded| standings(&Query::parse(text), expanded).unwrap();
        assert_eq!(ask("", false), []);
        assert_eq!(ask("status=0", false), [Standing::Delivered]);
        assert_eq!(ask("status=1", false), [Standing::Untried]);
        assert_eq!(ask("status=2", false), [Standing::Dead, Standing::Cancelled]);
        assert_eq!(ask("status=2", true), [Standing::Dead]);
        assert_eq!(ask("status=3", true), [Standing::Retried]);
        assert_eq!(ask("status=4", false), [Standing::Cancelled]);
        for text in ["status=5", "status=-1", "status=x"] {
            let refused = standings(&Query::parse(text), true).unwrap_err();
            assert_eq!(refused.status().as_u16(), 422, "{text}");
        }
    }
}
