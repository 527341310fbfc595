//! Pages of lists: what was asked for, and the frame around the rows.
//!
//! `iterator` is the last id of a page, `prevIterator` a minus sign and the first. One row more
//! than asked is read, to know whether more follows.
//! Never: an offset, or an iterator of another kind of thing.

use domain::error::Invalid;
use domain::limits::{PAGE_ROWS, PAGE_ROWS_MAX};
use schemars::JsonSchema;
use serde::Serialize;
use store::page::{Direction, Looked, PageOf};

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
    pub(crate) fn ordered(query: &Query, order: Direction) -> Result<Self, Problem> {
        let order = match query.get("order") {
            None => order,
            Some("ascending") => Direction::Ascending,
            Some("descending") => Direction::Descending,
            Some(_) => return Err(refuse("order", "must be ascending or descending")),
        };
        Self::fixed(query, order)
    }

    /// A page of a list whose order cannot be chosen.
    pub(crate) fn fixed(query: &Query, order: Direction) -> Result<Self, Problem> {
        let limit = query.number::<usize>("limit")?.unwrap_or(PAGE_ROWS);
        if limit > PAGE_ROWS_MAX {
            return Err(refuse("limit", &format!("must be at most {PAGE_ROWS_MAX}")));
        }
        let iterator = query.get("iterator");
        let backwards = iterator.is_some_and(|text| text.starts_with('-'));
        let iterator = iterator.map(|text| text.strip_prefix('-').unwrap_or(text).to_owned());
        Ok(Self { limit, iterator, backwards, order })
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

    /// What to read, with one row more than asked. `parse` reads an iterator.
    pub(crate) fn page<P>(
        &self,
        parse: impl FnOnce(&str) -> Option<P>,
    ) -> Result<PageOf<P>, Problem> {
        let beyond = match &self.iterator {
            None => None,
            Some(text) => Some(parse(text).ok_or_else(|| {
                Problem::field(&["query", "iterator"], "is no iterator of this list", Invalid::KIND)
            })?),
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
        ListOut {
            iterator: rows.last().map(&id),
            prev_iterator: rows.first().map(|row| format!("-{}", id(row))),
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
        let ended = found.reached.filter(|_| found.rows.len() <= self.limit).map(bare);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str, order: Direction) -> ListOut<u32> {
        let paging = Paging::ordered(&Query::parse(text), order).unwrap();
        let page = paging.page(|text| text.parse::<u32>().ok()).unwrap();
        let rows = Paging::cut(&page, (1..=10).collect(), |row| *row);
        paging.frame(rows, u32::to_string)
    }

    #[test]
    fn a_list_is_walked_there_and_back() {
        for order in [Direction::Ascending, Direction::Descending] {
            let mut seen: Vec<u32> = Vec::new();
            let mut iterator = String::new();
            loop {
                let page = ask(&format!("limit=3&iterator={iterator}"), order);
                seen.extend(&page.data);
                iterator = page.iterator.unwrap();
                if page.done {
                    break;
                }
            }
            let mut expected: Vec<u32> = (1..=10).collect();
            if order == Direction::Descending {
                expected.reverse();
            }
            assert_eq!(seen, expected);
            let last = ask("limit=3&iterator=", order);
            assert_eq!(last.data, expected[..3]);
            let back = ask(&format!("limit=3&iterator=-{}", expected[6]), order);
            assert_eq!(back.data, expected[3..6], "in the order of the list");
            assert_eq!(back.prev_iterator, Some(format!("-{}", expected[3])));
        }
    }

    #[test]
    fn edges_of_a_page() {
        let page = ask("limit=0", Direction::Ascending);
        assert!(page.data.is_empty() && !page.done && page.iterator.is_none());
        assert!(ask("limit=10", Direction::Ascending).done);
        assert!(!ask("limit=9", Direction::Ascending).done);
        let page = ask("iterator=10", Direction::Ascending);
        assert!(page.data.is_empty() && page.done && page.prev_iterator.is_none());
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(text, r#"{"data":[],"iterator":null,"done":true}"#);
    }

    #[test]
    fn the_far_end_reads_the_earliest_rows_in_the_order_of_the_list() {
        let paging = Paging::fixed(&Query::parse("limit=2"), Direction::Descending).unwrap();
        let paging = paging.with_far_end(true);
        let page = paging.page(|text| text.parse::<u32>().ok()).unwrap();
        let rows = Paging::cut(&page, (1..=10).collect(), |row| *row);
        assert_eq!(paging.frame(rows, u32::to_string).data, [2, 1]);
    }

    /// Rows up to 100 of which every tenth is wanted; a look passes 15.
    fn seek(text: &str) -> ListOut<u32> {
        let paging = Paging::fixed(&Query::parse(text), Direction::Ascending).unwrap();
        let page = paging.page(|text| text.parse::<u32>().ok()).unwrap();
        let (mut rows, mut reached) = (Vec::new(), None);
        let passed = Paging::cut(&PageOf { limit: 15, ..page }, (1..=100).collect(), |row| *row);
        for row in &passed {
            rows.extend((row % 10 == 0).then_some(*row));
            reached = Some(*row);
            if rows.len() >= page.limit {
                break;
            }
        }
        let reached = reached.filter(|_| passed.len() == 15);
        paging.look(Looked { rows, reached }, u32::to_string, |place| place.to_string())
    }

    #[test]
    fn a_page_that_was_cut_leads_on_from_where_the_look_ended() {
        let (mut seen, mut iterator, mut pages) = (Vec::<u32>::new(), String::new(), 0);
        loop {
            let page = seek(&format!("limit=3&iterator={iterator}"));
            seen.extend(&page.data);
            pages += 1;
            if page.done {
                break;
            }
            iterator = page.iterator.unwrap();
        }
        assert_eq!(seen, (1..=10).map(|row| row * 10).collect::<Vec<_>>());
        assert_eq!(pages, 7);
        let (mut seen, mut iterator) = (Vec::<u32>::new(), "-101".to_owned());
        loop {
            let page = seek(&format!("limit=3&iterator={iterator}"));
            seen.splice(0..0, page.data.iter().copied());
            if page.done {
                break;
            }
            iterator = page.prev_iterator.unwrap();
        }
        assert_eq!(seen, (1..=10).map(|row| row * 10).collect::<Vec<_>>(), "and back");
    }

    #[test]
    fn an_empty_page_leads_on_and_back() {
        let paging = |text: &str, far| {
            let paging = Paging::fixed(&Query::parse(text), Direction::Descending).unwrap();
            paging.with_far_end(far)
        };
        let nothing = |reached| Looked { rows: Vec::<u32>::new(), reached };
        let empty = |paging: &Paging, reached| {
            let page =
                paging.look(nothing(reached), u32::to_string, |place: u32| place.to_string());
            (page.iterator, page.prev_iterator, page.done)
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(empty(&paging("", false), Some(7)), (text("7"), text("-7"), false));
        assert_eq!(empty(&paging("", true), Some(7)), (text("-7"), text("-7"), false));
        assert_eq!(empty(&paging("", false), None), (None, None, true));
    }

    #[test]
    fn what_cannot_be_a_page_is_refused() {
        for text in ["limit=251", "limit=-1", "limit=x", "limit=99999999999999999999", "order=up"] {
            let refused = Paging::ordered(&Query::parse(text), Direction::Ascending);
            assert_eq!(refused.unwrap_err().status().as_u16(), 422, "{text}");
        }
        for text in ["iterator=x", "iterator=-", "iterator=--1", "iterator=%00"] {
            let paging = Paging::fixed(&Query::parse(text), Direction::Ascending).unwrap();
            let refused = paging.page(|text| text.parse::<u32>().ok()).unwrap_err();
            assert_eq!(refused.status().as_u16(), 422, "{text}");
        }
    }
}
