//! Notices, in the reference model.
//!
//! Never: keep one for an organisation that nobody tells.

use std::ops::Bound;

use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use domain::notice::{LastAttempt, MANAGEMENT, News, Notice, teller_of};

use super::MemoryStore;
use super::inbox::accept;
use super::state::{Live, State};
use super::writer::Tx;
use crate::Reply;
use crate::inbox::{Accepted, NewMessage};
use crate::notices::{Kept, Mail, Notices};

impl Notices for MemoryStore {
    fn waiting(&self, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.read(move |state| {
            let kept = state.notices.iter();
            let kept = kept.map(|(&place, notice)| Kept { place, notice: notice.clone() });
            kept.take(limit).collect()
        })
    }

    fn post(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.write(move |tx| {
            if !tx.state.notices.contains_key(&place) {
                return Ok(None);
            }
            let accepted = accept(tx, message);
            if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                forget(tx, place);
            }
            Ok(Some(accepted))
        })
    }

    fn discard(&self, place: u64) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            forget(tx, place);
            Ok(())
        })
    }

    fn keep_mails(&self, keep: bool) {
        self.shared.state().keeps_mails = keep;
    }

    fn mails(&self, after: u64, limit: usize) -> Reply<'_, Vec<Mail>> {
        self.read(move |state| {
            let beyond = (Bound::Excluded(after), Bound::Unbounded);
            state.mails.range(beyond).map(|(_, mail)| *mail).take(limit).collect()
        })
    }

    fn mailed(&self, place: u64) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            tx.rows += usize::from(tx.state.mails.remove(&place).is_some());
            Ok(())
        })
    }
}

fn forget(tx: &mut Tx<'_>, place: u64) {
    tx.rows += usize::from(tx.state.notices.remove(&place).is_some());
}

/// Notes what happened to an endpoint, deleted or not, if its organisation is told.
pub(super) fn note(
    tx: &mut Tx<'_>,
    news: News,
    endpoint: EndpointKey,
    message: Option<MessageKey>,
) {
    let Some(notice) = notice(tx.state, news, endpoint, message) else { return };
    let place = tx.draw();
    tx.state.notices.insert(place, notice);
    tx.rows += 1;
    tx.noted = true;
}

/// Notes what happened to an endpoint, and keeps an e-mail of it if it names whom to write to.
pub(super) fn note_by_mail(tx: &mut Tx<'_>, news: News, endpoint: EndpointKey) {
    note(tx, news, endpoint, None);
    let to = tx.state.live_endpoint(endpoint).and_then(|it| it.spec.contact_email.as_ref());
    if tx.state.keeps_mails && to.is_some() {
        let (place, at) = (tx.draw(), tx.now);
        tx.state.mails.insert(place, Mail { place, endpoint, news, at });
        tx.rows += 1;
        tx.noted = true;
    }
}

/// Notes the same of every live endpoint of an application.
pub(super) fn note_all(tx: &mut Tx<'_>, news: News, app: AppKey) {
    let live = tx.state.endpoints.values().filter_map(Live::alive);
    let keys: Vec<_> = live.filter(|it| it.app == app).map(|it| it.key).collect();
    for endpoint in keys {
        note(tx, news, endpoint, None);
    }
}

fn notice(
    state: &State,
    news: News,
    endpoint: EndpointKey,
    message: Option<MessageKey>,
) -> Option<Notice> {
    let to = &state.endpoints.get(&endpoint)?.row;
    let app = &state.apps.get(&to.app)?.row;
    if !is_told(state, app.org) {
        return None;
    }
    let last = message.and_then(|key| state.attempts_for(key, endpoint).next_back());
    let attempt = last.map(|last| LastAttempt {
        id: last.id,
        status: last.attempt.status(),
        at: last.attempt.started_at,
    });
    let message = message.and_then(|key| state.messages.get(&key));
    Some(Notice {
        org: app.org,
        news,
        app: (app.id, app.spec.uid.clone()),
        endpoint: (to.id, to.spec.uid.clone()),
        message: message.map(|message| (message.id, message.spec.event_id.clone())),
        attempt,
    })
}

fn is_told(state: &State, org: PublicId) -> bool {
    let Some(uid) = teller_of(org) else { return false };
    let mut live = state.apps.values().filter_map(Live::alive);
    live.any(|app| app.org == MANAGEMENT && app.spec.uid.as_ref() == Some(&uid))
}
