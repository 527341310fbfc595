//! Pages of lists: what was asked for, and the frame around the rows.
//!
//! `iterator` is the last id of a page, sealed; `prevIterator` a minus sign and the first. An id
//! without a seal is taken if it is that of a row of the list, for callers put such together. One
//! row more than asked is read, to know whether more follows.
//! Never: an offset, or an iterator of another list.

use domain::error::Invalid;
use domain::limits::{PAGE_ROWS, PAGE_ROWS_MAX};
use schemars::JsonSchema;
use serde::Serialize;
use store::page::{Direction, Looked, PageOf};

use super::iterators::{Iterator, Seal};
use super::problem::Problem;
use super::query::{Query, refuse};

/// A page as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Paging {
    limit: usize,
    iterator: Option<String>,
    /// Read against the order of the list, and turned round.
    backwards: bool,
    order: Direction,
    /// Of the list that is asked for.
    seal: Seal,
}

/// A page as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListResponse_{T}_")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListOut<T> {
    data: Vec<T>,
    /// Leads on.
    iterator: Option<String>,
    /// Leads back.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_iterator: Option<String>,
    /// Whether this is the last page. One that is not may have fewer rows than asked for, or none:
    /// `iterator` leads on.
    done: bool,
}

impl<T> ListOut<T> {
    /// The same frame around other rows.
    pub(crate) fn map<U>(self, view: impl FnMut(T) -> U) -> ListOut<U> {
        ListOut {
            data: self.data.into_iter().map(view).collect(),
            iterator: self.iterator,
            prev_iterator: self.prev_iterator,
            done: self.done,
        }
    }

    /// The same frame around views that borrow from the rows.
    pub(crate) fn view<'a, U>(&'a self, view: impl FnMut(&'a T) -> U) -> ListOut<U> {
        ListOut {
            data: self.data.iter().map(view).collect(),
            iterator: self.iterator.clone(),
            prev_iterator: self.prev_iterator.clone(),
            done: self.done,
        }
    }
}

impl Paging {
    /// A page in the order of the parameter `order`, by default `order`.
    pub(crate) fn ordered(query: &Query, order: Direction, seal: Seal) -> Result<Self, Problem> {
        let order = match query.get("order")? {
            None => order,
            Some("ascending") => Direction::Ascending,
            Some("descending") => Direction::Descending,
            Some(_) => return Err(refuse("order", "must be ascending or descending")),
        };
        Self::fixed(query, order, seal)
    }

    /// A page of a list whose order cannot be chosen.
    pub(crate) fn fixed(query: &Query, order: Direction, seal: Seal) -> Result<Self, Problem> {
        let limit = query.number::<usize>("limit")?.unwrap_or(PAGE_ROWS);
        if limit > PAGE_ROWS_MAX {
            return Err(refuse("limit", &format!("must be at most {PAGE_ROWS_MAX}")));
        }
        let iterator = query.given("iterator")?;
        let backwards = iterator.is_some_and(|text| text.starts_with('-'));
        let iterator = iterator.map(|text| text.strip_prefix('-').unwrap_or(text).to_owned());
        Ok(Self { limit, iterator, backwards, order, seal })
    }

    /// From the other end: the first rows against the order of the list. Has no effect once there
    /// is an iterator.
    #[must_use]
    pub(crate) const fn with_far_end(mut self, far: bool) -> Self {
        if far && self.iterator.is_none() {
            self.backwards = true;
        }
        self
    }

    /// What to read, with one row more than asked. `parse` reads a place; `is_row` says whether an
    /// id without a seal is that of a row of this list.
    pub(crate) async fn page<P, F>(
        &self,
        parse: impl FnOnce(&str) -> Option<P>,
        is_row: impl FnOnce(String) -> F,
    ) -> Result<PageOf<P>, Problem>
    where
        F: Future<Output = Result<bool, Problem>> + Send,
    {
        let beyond = match &self.iterator {
            None => None,
            Some(text) => {
                let read = self.seal.read(text).ok_or_else(no_iterator)?;
                let (Iterator::Sealed(place) | Iterator::Bare(place)) = read;
                let beyond = parse(place).ok_or_else(no_iterator)?;
                if let Iterator::Bare(id) = read
                    && !is_row(id.to_owned()).await?
                {
                    return Err(no_iterator());
                }
                Some(beyond)
            }
        };
        let direction = match (self.order, self.backwards) {
            (Direction::Ascending, false) | (Direction::Descending, true) => Direction::Ascending,
            (Direction::Descending, false) | (Direction::Ascending, true) => Direction::Descending,
        };
        Ok(PageOf { beyond, direction, limit: self.limit + 1 })
    }

    /// The frame around rows that were read with [`Paging::page`].
    pub(crate) fn frame<T>(&self, mut rows: Vec<T>, id: impl Fn(&T) -> String) -> ListOut<T> {
        let done = rows.len() <= self.limit && self.limit > 0;
        rows.truncate(self.limit);
        if self.backwards {
            rows.reverse();
        }
        let sealed = |row: &T| self.seal.put(&id(row));
        ListOut {
            iterator: rows.last().map(sealed),
            prev_iterator: rows.first().map(|row| format!("-{}", sealed(row))),
            data: rows,
            done,
        }
    }

    /// The frame around what a look with [`Paging::page`] found; `bare` is the iterator of a place.
    ///
    /// A look that ended before the page was full is not the last one, and leads on from where it
    /// ended. From an empty page `iterator` leads on in the direction in which it was read.
    pub(crate) fn look<T, P>(
        &self,
        found: Looked<T, P>,
        id: impl Fn(&T) -> String,
        bare: impl Fn(P) -> String,
    ) -> ListOut<T> {
        let ended = found.reached.filter(|_| found.rows.len() <= self.limit);
        let ended = ended.map(|place| self.seal.put(&bare(place)));
        let mut list = self.frame(found.rows, id);
        let Some(ended) = ended else { return list };
        let back = format!("-{ended}");
        list.done = false;
        if self.backwards || list.data.is_empty() {
            list.prev_iterator = Some(back.clone());
        }
        match (self.backwards, list.data.is_empty()) {
            (false, _) => list.iterator = Some(ended),
            (true, true) => list.iterator = Some(back),
            (true, false) => {}
        }
        list
    }

    /// Rows of a list that is at hand whole, in ascending order of place, as [`Paging::page`] would
    /// read them.
    pub(crate) fn cut<T, P: Ord>(
        page: &PageOf<P>,
        ascending: Vec<T>,
        place: impl Fn(&T) -> P,
    ) -> Vec<T> {
        let beyond = |row: &T| match (&page.beyond, page.direction) {
            (None, _) => true,
            (Some(place_of), Direction::Ascending) => place(row) > *place_of,
            (Some(place_of), Direction::Descending) => place(row) < *place_of,
        };
        let mut rows: Vec<_> = ascending.into_iter().filter(beyond).collect();
        if page.direction == Direction::Descending {
            rows.reverse();
        }
        rows.truncate(page.limit);
        rows
    }
}

fn no_iterator() -> Problem {
    Problem::field(&["query", "iterator"], "is no iterator of this list", Invalid::KIND)
}

#[cfg(test)]
mod tests;
