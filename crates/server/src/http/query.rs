//! Query strings: flags, numbers, times and lists, in every spelling that clients use.
//!
//! Unknown parameters are ignored; one given twice is refused, except in lists.
//! Never: guess; what cannot be read is a 422 that names it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::error::Invalid;
use http::request::Parts;
use resilience::Timestamp;

use super::fields::time_of;
use super::problem::Problem;
use crate::state::Shared;

/// Entries of a list at most.
const LIST_MAX: usize = 500;

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl FromRequestParts<Arc<Shared>> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    /// Reads what follows the question mark.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = url::form_urlencoded::parse(text.as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// One parameter; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Result<Option<&str>, Problem> {
        Ok(self.given(name)?.filter(|value| !value.is_empty()))
    }

    /// One parameter as it was given, though it be empty.
    pub(crate) fn given(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut found = self.0.iter().filter(|(key, _)| key == name);
        let first = found.next().map(|(_, value)| value.as_str());
        if found.next().is_some() {
            return Err(refuse(name, "must be given once"));
        }
        Ok(first)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        match self.get(name)? {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(_) => Err(refuse(name, "must be true or false")),
        }
    }

    /// A whole number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| refuse(name, "must be a whole number"));
        self.get(name)?.map(read).transpose()
    }

    /// A point in time, RFC 3339.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let read = |text: &str| {
            // A plus sign that was not encoded has become a space.
            time_of(&text.replace(' ', "+")).map_err(|rule| refuse(name, rule))
        };
        self.get(name)?.map(read).transpose()
    }

    /// A text that is checked.
    pub(crate) fn text(
        &self,
        name: &str,
        check: impl Fn(&str, &str) -> Result<(), Invalid>,
    ) -> Result<Option<String>, Problem> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        check(name, text).map_err(|fault| refuse(name, &fault.rule))?;
        Ok(Some(text.to_owned()))
    }

    /// A list: `a,b`, repeated, `name[]=a`, `name[0]=a`. Each entry is checked.
    pub(crate) fn list(
        &self,
        name: &str,
        check: impl Fn(&str, &str) -> Result<(), Invalid>,
    ) -> Result<Vec<String>, Problem> {
        let mut entries = Vec::new();
        for (key, value) in &self.0 {
            if !is_list(key, name) {
                continue;
            }
            for entry in value.split(',').filter(|entry| !entry.is_empty()) {
                check(name, entry).map_err(|fault| refuse(name, &fault.rule))?;
                entries.push(entry.to_owned());
            }
        }
        if entries.len() > LIST_MAX {
            return Err(refuse(name, &format!("must have at most {LIST_MAX} entries")));
        }
        Ok(entries)
    }
}

fn is_list(key: &str, name: &str) -> bool {
    let Some(rest) = key.strip_prefix(name) else { return false };
    let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A parameter that breaks a rule.
pub(crate) fn refuse(name: &str, rule: &str) -> Problem {
    Problem::field(&["query", name], rule, Invalid::KIND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::text;

    #[test]
    fn lists_come_in_every_spelling() {
        for text in [
            "event_types=a,b",
            "event_types=a&event_types=b",
            "event_types[]=a&event_types[]=b",
            "event_types[0]=a&event_types[1]=b",
            "event_types%5B0%5D=a&event_types%5B%5D=b",
            "event_types=a%2Cb&event_type=c&event_typesx=d&event_types[x]=e",
        ] {
            let list = Query::parse(text).list("event_types", text::event_type_name).unwrap();
            assert_eq!(list, ["a", "b"], "{text}");
        }
        for text in ["event_types=a%00", "event_types=a b", "event_types=%F0%9F%90%8E"] {
            let refused = Query::parse(text).list("event_types", text::event_type_name);
            assert_eq!(refused.unwrap_err().status().as_u16(), 422, "{text}");
        }
        let many = Query::parse(&format!("event_types={}", "a,".repeat(501)));
        assert!(many.list("event_types", text::event_type_name).is_err());
    }

    #[test]
    fn single_values_are_read_or_refused() {
        let query =
            Query::parse("a=true&b=0&c=x&n=6&m=-1&d=1&d=1&t=2030-01-31T10:00:00%2B01:00&e=");
        assert!(query.flag("a", false).unwrap() && !query.flag("b", true).unwrap());
        assert!(query.flag("none", true).unwrap() && query.flag("c", true).is_err());
        assert_eq!(query.number::<u64>("n").unwrap(), Some(6));
        assert!(query.number::<u64>("d").is_err() && query.flag("d", true).is_err(), "twice");
        assert!(query.number::<u64>("m").is_err() && query.number::<u64>("c").is_err());
        assert_eq!(query.number::<u64>("e").unwrap(), None);
        let at = query.time("t").unwrap().unwrap();
        assert_eq!(at, Timestamp::from_secs(1_896_080_400));
        assert_eq!(Query::parse("t=2030-01-31T10:00:00+01:00").time("t").unwrap(), Some(at));
        for bad in ["t=2030-01-31", "t=now", "t=-1", "t=99999-01-01T00:00:00Z"] {
            assert!(Query::parse(bad).time("t").is_err(), "{bad}");
        }
    }
}
