//! What came of an import: counted by kind, named where something was not made.
//!
//! Never: a secret.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::call::Columns;
use crate::failure::Failure;
use crate::safe::safe;
use crate::show::Out;
use crate::table::Table;

const COLUMNS: Columns = &[
    ("", "/kind"),
    ("MADE", "/made"),
    ("SAME", "/same"),
    ("DIFFERENT", "/different"),
    ("REFUSED", "/refused"),
];
const DRY_COLUMNS: Columns = &[
    ("", "/kind"),
    ("TO MAKE", "/made"),
    ("SAME", "/same"),
    ("DIFFERENT", "/different"),
    ("REFUSED", "/refused"),
];

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    EventType,
    Application,
    Endpoint,
}

const KINDS: [(Kind, &str, &str); 3] = [
    (Kind::EventType, "event type", "event types"),
    (Kind::Application, "application", "applications"),
    (Kind::Endpoint, "endpoint", "endpoints"),
];

/// What became of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was made, or would be.
    Made,
    /// It is there already, as it should be.
    Same,
    /// It is there already, with other values in these fields, and was left alone.
    Different(Vec<&'static str>),
    /// It was not made, for this reason.
    Refused(String),
}

impl Fate {
    /// Of a thing that is there already: whether each field has the value that it should.
    pub(crate) fn of(fields: &[(&'static str, bool)]) -> Self {
        let other = fields.iter().filter(|(_, same)| !same).map(|(name, _)| *name);
        let other: Vec<_> = other.collect();
        if other.is_empty() { Self::Same } else { Self::Different(other) }
    }
}

/// The fate of one thing: what cannot be taken over is refused, and the rest goes on; without an
/// answer nothing does.
pub(crate) fn fate_of(brought: Result<Fate, Failure>) -> Result<Fate, Failure> {
    match brought {
        Err(Failure::Refused(why) | Failure::Usage(why) | Failure::Other(why)) => {
            Ok(Fate::Refused(why))
        }
        other => other,
    }
}

/// Old and new id of one thing.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) kind: Kind,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) uid: String,
}

/// What came of it all.
#[derive(Debug)]
pub(crate) struct Report {
    dry_run: bool,
    fates: Vec<(Kind, String, Fate)>,
    notes: Vec<String>,
    mapped: Vec<Mapped>,
}

impl Report {
    /// Nothing yet.
    pub(crate) const fn new(dry_run: bool) -> Self {
        Self { dry_run, fates: Vec::new(), notes: Vec::new(), mapped: Vec::new() }
    }

    /// One more.
    pub(crate) fn add(&mut self, kind: Kind, name: &str, fate: Fate) {
        self.fates.push((kind, name.to_owned(), fate));
    }

    /// One that is taken over, and what is said of it; of one that is refused its reason is enough.
    pub(crate) fn add_with(&mut self, kind: Kind, name: &str, fate: Fate, notes: &[String]) {
        if !matches!(fate, Fate::Refused(_)) {
            let kind = name_of(kind).0;
            self.notes.extend(notes.iter().map(|note| format!("{kind} {name}: {note}")));
        }
        self.add(kind, name, fate);
    }

    /// Something that was not taken over, though what has it was.
    pub(crate) fn note(&mut self, said: String) {
        self.notes.push(said);
    }

    /// One more pair of ids.
    pub(crate) fn map(&mut self, mapped: Mapped) {
        self.mapped.push(mapped);
    }

    /// Writes all pairs of ids.
    pub(crate) fn write_mapping(&self, file: &Path) -> Result<(), Failure> {
        let mut text = String::from("kind,svix_id,peyk_id,uid\n");
        for Mapped { kind, old, new, uid } in &self.mapped {
            let kind = name_of(*kind).0;
            let _infallible = writeln!(text, "{kind},{old},{new},{uid}");
        }
        std::fs::write(file, text)
            .map_err(|fault| Failure::Other(format!("cannot write {}: {fault}", file.display())))
    }

    /// Shows the counts, and what needs a look.
    pub(crate) fn show(&self, out: &Out, mapping: &Path) -> Result<(), Failure> {
        let rows: Vec<Value> = KINDS.iter().map(|(kind, _, name)| self.row(*kind, name)).collect();
        let looks: Vec<_> = self
            .fates
            .iter()
            .filter_map(|(kind, name, fate)| {
                let kind = name_of(*kind).0;
                match fate {
                    Fate::Made | Fate::Same => None,
                    Fate::Different(fields) => {
                        let said =
                            format!("is there with another {}: left alone", fields.join(", "));
                        Some((kind, name, said))
                    }
                    Fate::Refused(why) => Some((kind, name, format!("refused: {why}"))),
                }
            })
            .collect();
        if out.is_json() {
            let looks = looks
                .iter()
                .map(|(kind, name, said)| json!({"kind": kind, "name": name, "said": said}));
            let looks: Vec<_> = looks.collect();
            let all = json!({
                "dryRun": self.dry_run, "counts": rows, "looks": looks, "notes": self.notes,
            });
            return out.json(&all.to_string());
        }
        let columns = if self.dry_run { DRY_COLUMNS } else { COLUMNS };
        out.text(&Table::new(columns).lines(&rows))?;
        for (kind, name, said) in looks {
            out.line(&safe(&format!("{kind} {name} {said}")))?;
        }
        for note in &self.notes {
            out.line(&safe(note))?;
        }
        if self.dry_run {
            return out.line("nothing was changed: this was a dry run");
        }
        if !self.fates.iter().any(|(_, _, fate)| *fate == Fate::Made) {
            out.line("nothing was changed")?;
        }
        out.line(&format!("old and new ids: {}", mapping.display()))
    }

    /// An error if something was refused.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let refused = |fate: &Fate| matches!(fate, Fate::Refused(_));
        match self.fates.iter().filter(|(_, _, fate)| refused(fate)).count() {
            0 => Ok(()),
            count if self.dry_run => Err(Failure::Refused(format!("{count} would be refused"))),
            count => Err(Failure::Refused(format!("{count} refused; the rest is taken over"))),
        }
    }

    fn row(&self, kind: Kind, name: &str) -> Value {
        let count = |wanted: fn(&Fate) -> bool| {
            self.fates.iter().filter(|(of, _, fate)| *of == kind && wanted(fate)).count()
        };
        json!({
            "kind": name,
            "made": count(|fate| matches!(fate, Fate::Made)),
            "same": count(|fate| matches!(fate, Fate::Same)),
            "different": count(|fate| matches!(fate, Fate::Different(_))),
            "refused": count(|fate| matches!(fate, Fate::Refused(_))),
        })
    }
}

fn name_of(kind: Kind) -> (&'static str, &'static str) {
    let found = KINDS.iter().find(|(of, ..)| *of == kind);
    found.map_or(("", ""), |(_, one, many)| (one, many))
}
