//! A batch in one statement, which commits by itself: one flight.
//!
//! Nearly every batch is as those who made it expected: applications are at the versions at which
//! targets were matched, keys and event ids are new, and the row of each result is still there.
//! Such a batch is written in one go. Where one thing is otherwise, nothing is written, and the
//! batch goes the way on which it is asked step by step (`sets`).
//! Never: decide what becomes of a post or a result that is not as expected, or write without the
//! lock of the node's row.

use std::collections::{BTreeMap, HashSet};

use domain::delivery::Pending;
use domain::ids::{MessageKey, PublicId};

use super::columns::{Columns, Script};
use super::conn::value;
use super::door::{Post, Results};
use super::fault::{Fault, Remedy};
use super::inbox::{self, Keyed, Written, pending_rows};
use super::ledger::follow::{After, close};
use super::ledger::keep::{self, Kept};
use super::ledger::{Closing, SAME, lives};
use super::node::CHANNEL;
use super::pending;
use super::rows::text;
use super::sets::Made;
use super::tx::Tx;
use super::wake::Told;
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::{Record, Recorded};

/// What results do.
#[derive(Default)]
struct Outcomes<'r> {
    rows: Vec<Pending>,
    kept: Vec<Kept<'r>>,
    moved: Vec<Pending>,
    closing: Vec<Closing>,
}

/// What posts are.
struct Arrivals<'p> {
    new: Vec<Keyed<'p>>,
    rows: Vec<Pending>,
}

impl Tx {
    /// Writes and commits them; `None` where that is not all there is to do, and nothing was
    /// written.
    pub(super) async fn write_at_once(
        &mut self,
        posts: &[Post],
        results: &[Results],
    ) -> Result<Option<Made>, Fault> {
        let new: Vec<&NewMessage> = posts.iter().map(|post| &post.new).collect();
        let records: Vec<&Record> = results.iter().flat_map(|results| &results.records).collect();
        if !are_distinct(&new) || !are_plain(&records) {
            return Ok(None);
        }
        let Some(written) = self.draw_for_posts(&new) else { return Ok(None) };
        let arrivals = Arrivals {
            new: written.iter().map(|one| (one.key, new[one.post])).collect(),
            rows: pending_rows(&new, &written),
        };
        let Some(outcomes) = self.outcomes(&records) else { return Ok(None) };
        self.hand_over(&new, &written, arrivals.rows.clone());
        self.count(&arrivals, &outcomes);
        let told = self.for_owners();
        let done = self.run_at_once(&arrivals, &outcomes, &told).await;
        match done {
            Ok(true) => Ok(Some(self.made(&arrivals, results))),
            Ok(false) => {
                self.undo();
                Ok(None)
            }
            Err(fault) => match fault.remedy() {
                Remedy::WithoutIt | Remedy::Again => {
                    self.undo();
                    Ok(None)
                }
                Remedy::None | Remedy::Reconnect | Remedy::Later => Err(fault),
            },
        }
    }

    /// Keys and times of due; `None` where a post names a time that it may not.
    fn draw_for_posts(&mut self, posts: &[&NewMessage]) -> Option<Vec<Written>> {
        let due: Option<Vec<_>> = posts.iter().map(|new| new.spec.due_at(self.now)).collect();
        let due = due?.into_iter().enumerate();
        Some(due.map(|(post, due_at)| Written { post, key: self.drawn_key(), due_at }).collect())
    }

    fn drawn_key(&mut self) -> MessageKey {
        MessageKey(self.draw())
    }

    /// What results do, if each number of an attempt is free; `None` where a result asks for more
    /// than rows.
    fn outcomes<'r>(&mut self, records: &[&'r Record]) -> Option<Outcomes<'r>> {
        let mut outcomes = Outcomes::default();
        for record in records {
            let drawn = self.draw_for_record();
            let kept = record.attempt.as_ref();
            let sends = kept.map_or(0, |attempt| attempt.number).max(record.pending.sends);
            match After::of(record, drawn, sends) {
                After::Nothing => {}
                After::Moves(row) => outcomes.moved.push(row),
                After::Ends(one) => outcomes.closing.push(one),
                After::Settles | After::RaisesSends => return None,
            }
            outcomes.kept.extend(kept.map(|attempt| Kept::of(record, attempt, drawn.attempt)));
            outcomes.rows.push(record.pending);
        }
        Some(outcomes)
    }

    /// Counts the rows beside those that are handed over.
    fn count(&mut self, arrivals: &Arrivals<'_>, of: &Outcomes<'_>) {
        let count = |rows: usize| i64::try_from(rows).unwrap_or(0);
        self.batch.depth += count(of.moved.len()) - count(of.rows.len());
        self.batch.rows += arrivals.new.len() + of.rows.len() + of.kept.len();
        self.batch.rows += of.moved.len() + of.closing.len();
    }

    async fn run_at_once(
        &self,
        arrivals: &Arrivals<'_>,
        outcomes: &Outcomes<'_>,
        told: &Told,
    ) -> Result<bool, Fault> {
        let mut script = Script::default();
        let me = script.value("bigint", self.me().id.0);
        let mut parts = vec![format!("me AS (SELECT id FROM node WHERE id = {me} FOR KEY SHARE)")];
        parts.push(sound(&mut script, arrivals));
        if !arrivals.new.is_empty() {
            parts.push(self.arrive(&mut script, arrivals));
        }
        parts.push(take(&mut script, &outcomes.rows));
        self.follow_at_once(&mut script, outcomes, &mut parts);
        let mut said = String::new();
        if !told.is_empty() {
            let tells = script.insert("wake", told.columns());
            parts.push(format!("told AS ({tells} WHERE {WHOLE})"));
            let (channel, notice) =
                (script.value("text", CHANNEL), script.value("text", told.notice()));
            said = format!(", CASE WHEN yes THEN pg_notify({channel}, {notice})::text END");
        }
        let sql = format!("WITH {} SELECT yes{said} FROM whole", parts.join(", "));
        // What is awaited is the end of the statement, which the server sends after the commit.
        let done = value::<bool>(self.conn(), &sql, &script.values()).await?;
        Ok(done == Some(true))
    }

    /// Messages and their pending rows.
    fn arrive<'p>(&self, script: &mut Script<'p>, of: &Arrivals<'p>) -> String {
        let mut columns = inbox::columns(&of.new, self.now);
        if of.new.iter().any(|(_, new)| inbox::has_more(new)) {
            columns = inbox::optional_columns(columns, &of.new);
        }
        let messages = script.insert("message", columns);
        let rows = script.insert("pending", pending::new_columns(&of.rows));
        format!("arrived AS ({messages} WHERE {SOUND}), waits AS ({rows} WHERE {SOUND})")
    }

    /// Attempts, and what follows from them.
    fn follow_at_once<'r>(
        &self,
        script: &mut Script<'r>,
        of: &'r Outcomes<'r>,
        parts: &mut Vec<String>,
    ) {
        if !of.kept.is_empty() {
            let mut columns = keep::columns(&of.kept);
            if of.kept.iter().any(keep::has_more) {
                columns = keep::optional_columns(columns, &of.kept);
            }
            let attempts = script.insert("attempt", columns);
            parts.push(format!("sent AS ({attempts} WHERE {WHOLE})"));
        }
        if !of.moved.is_empty() {
            let rows = script.insert("pending", pending::columns(&of.moved));
            parts.push(format!("moved AS ({rows} WHERE {WHOLE})"));
        }
        if !of.closing.is_empty() {
            parts.push(close(script, &of.closing, self.now, WHOLE));
        }
    }

    /// What became of all of them.
    fn made(&self, arrivals: &Arrivals<'_>, results: &[Results]) -> Made {
        let accepted = arrivals.new.iter().map(|(key, new)| {
            let id = PublicId::new(key.0, new.random);
            Ok(Accepted::New { key: *key, id, accepted_at: self.now })
        });
        let recorded = results.iter().map(|of| Ok(vec![Recorded::Applied; of.records.len()]));
        Made { accepted: accepted.collect(), recorded: recorded.collect() }
    }
}

/// All is as it was expected, as far as that can be seen before anything is written.
const SOUND: &str = "(SELECT yes FROM sound)";
/// So it is with the rows of results, too.
const WHOLE: &str = "(SELECT yes FROM whole)";

/// Whether this node lives, applications are at their versions, keys and event ids are new.
fn sound<'p>(script: &mut Script<'p>, of: &Arrivals<'p>) -> String {
    let mut sound = String::from("sound AS MATERIALIZED (SELECT EXISTS (SELECT 1 FROM me)");
    let new = || of.new.iter().map(|(_, new)| *new);
    if !of.new.is_empty() {
        let apps: BTreeMap<i64, i64> = new().map(|new| (new.app.0, new.app_version)).collect();
        let columns = Columns::default()
            .each("key", "bigint", apps.keys().copied().collect())
            .each("version", "bigint", apps.values().copied().collect());
        let rows = script.rows(columns);
        sound += &format!(
            " AND NOT EXISTS (SELECT 1 FROM {rows} WHERE NOT EXISTS (
                 SELECT 1 FROM app WHERE app.key = r.key AND app.version = r.version AND deleted_at IS NULL))"
        );
    }
    if new().any(inbox::has_more) {
        let scopes = new().filter_map(|new| Some(&new.key.as_ref()?.scope[..])).collect();
        let scopes = script.value::<Vec<&[u8]>>("bytea[]", scopes);
        let named = || new().filter_map(|new| Some((new.app.0, new.spec.event_id.as_deref()?)));
        let columns = Columns::default()
            .each("app", "bigint", named().map(|(app, _)| app).collect())
            .each("event", "text", named().map(|(_, event)| text(event)).collect());
        let rows = script.rows(columns);
        sound += &format!(
            " AND NOT EXISTS (SELECT 1 FROM message WHERE key_scope = ANY({scopes}))
             AND NOT EXISTS (SELECT 1 FROM {rows} JOIN message ON message.app = r.app AND message.event_id = r.event)"
        );
    }
    sound + " AS yes)"
}

/// Takes out the rows of results. One that is gone is rare enough that all is thrown back by an
/// error.
fn take(script: &mut Script<'_>, rows: &[Pending]) -> String {
    if rows.is_empty() {
        return format!("whole AS MATERIALIZED (SELECT {SOUND} AS yes)");
    }
    let count = script.value("bigint", i64::try_from(rows.len()).unwrap_or(i64::MAX));
    let rows = script.rows(lives(rows));
    format!(
        "taken AS (DELETE FROM pending USING {rows} WHERE {SAME} AND {SOUND} RETURNING 1),
         whole AS MATERIALIZED (SELECT CASE
             WHEN NOT {SOUND} THEN false
             WHEN count(*) = {count} THEN true
             ELSE ('rows of results are gone: ' || {count} - count(*))::boolean END AS yes FROM taken)"
    )
}

/// Whether no post stands in another one's way.
fn are_distinct(posts: &[&NewMessage]) -> bool {
    let (mut scopes, mut events, mut versions) = (HashSet::new(), HashSet::new(), BTreeMap::new());
    posts.iter().all(|new| {
        let event = new.spec.event_id.as_deref();
        new.key.as_ref().is_none_or(|key| scopes.insert(key.scope))
            && event.is_none_or(|event| events.insert((new.app, event)))
            && *versions.entry(new.app).or_insert(new.app_version) == new.app_version
    })
}

/// Whether results do nothing but what stands in their deliveries' rows, each delivery by itself.
fn are_plain(records: &[&Record]) -> bool {
    let mut deliveries = HashSet::with_capacity(records.len());
    records.iter().all(|record| {
        let Record { pending, lane, disable, news, .. } = record;
        let is_news = news.delivery.is_some() || news.breaker.is_some();
        lane.is_none()
            && disable.is_none()
            && !is_news
            && deliveries.insert((pending.message, pending.endpoint))
    })
}
