//! Tables for people: aligned columns, two spaces between.
//!
//! Widths only grow, so that pages that follow each other stay in line as far as can be.
//! Never: colour, a border, or a character that a terminal would act on.

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use crate::call::Columns;
use crate::safe::safe;

/// A column is not made wider than this for the ones after it.
const WIDTH_MAX: usize = 60;
/// An object in a cell is cut after so many characters; JSON has all of it.
const OBJECT_CHARS_MAX: usize = 200;

/// A table that is written page by page.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Columns,
    widths: Vec<usize>,
    is_begun: bool,
}

impl Table {
    /// With these columns.
    pub(crate) fn new(columns: Columns) -> Self {
        let widths = columns.iter().map(|(title, _)| title.width()).collect();
        Self { columns, widths, is_begun: false }
    }

    /// The lines of a page of rows; before the first page the titles.
    pub(crate) fn lines(&mut self, rows: &[Value]) -> String {
        let cells: Vec<Vec<String>> = rows.iter().map(|row| self.cells(row)).collect();
        for row in &cells {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width().min(WIDTH_MAX));
            }
        }
        let mut text = String::new();
        if !std::mem::replace(&mut self.is_begun, true) {
            let titles = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
            self.line(&mut text, titles);
        }
        for row in cells {
            self.line(&mut text, row);
        }
        text
    }

    fn cells(&self, row: &Value) -> Vec<String> {
        let cell = |(_, pointer): &(&str, &str)| cell(row.pointer(pointer).unwrap_or(&Value::Null));
        self.columns.iter().map(cell).collect()
    }

    fn line(&self, text: &mut String, cells: Vec<String>) {
        let begin = text.len();
        for (cell, width) in cells.iter().zip(&self.widths) {
            if text.len() > begin {
                text.push_str("  ");
            }
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width())));
        }
        text.truncate(begin + text[begin..].trim_end().len());
        text.push('\n');
    }
}

/// A line for each field: names to the left, values to the right.
pub(crate) fn fields(pairs: &[(String, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in pairs {
        let gap = " ".repeat(width - name.width() + 2);
        text.push_str(format!("{}{gap}{}", safe(name), safe(value)).trim_end());
        text.push('\n');
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => safe(text).into_owned(),
        Value::Array(entries) if entries.iter().all(Value::is_string) => {
            let texts = entries.iter().filter_map(Value::as_str).collect::<Vec<_>>();
            safe(&texts.join(",")).into_owned()
        }
        value => {
            let text = value.to_string();
            let end = text.char_indices().nth(OBJECT_CHARS_MAX).map(|(at, _)| at);
            let cut = end.map_or_else(|| text.clone(), |at| format!("{}…", &text[..at]));
            safe(&cut).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_tail() {
        let mut table = Table::new(&[("ID", "/id"), ("NAME", "/name"), ("N", "/data/n")]);
        let first = [json!({"id": "a", "name": "Ünï 馬", "data": {"n": 1}}), json!({"id": "bb"})];
        assert_eq!(table.lines(&first), "ID  NAME    N\na   Ünï 馬  1\nbb  -       -\n");
        let long = json!({"data": {"n": {"é": "x".repeat(200)}}});
        let shown = Table::new(&[("N", "/data/n")]).lines(&[long]);
        assert!(shown.ends_with("xx…\n") && shown.chars().count() == 204, "{shown}");
        let next = [json!({"id": "c", "name": ["x", "y"]}), json!({"name": "\x1b[0m"})];
        assert_eq!(table.lines(&next), "c   x,y        -\n-   \\u{1b}[0m  -\n");
    }

    #[test]
    fn fields_stand_below_each_other() {
        let pairs = [("id".to_owned(), "a".to_owned()), ("name".to_owned(), "b\nc".to_owned())];
        assert_eq!(fields(&pairs), "id    a\nname  b\\nc\n");
    }
}
