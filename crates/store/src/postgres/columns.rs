//! Statements that write several rows at once: values go column by column, each an array.
//!
//! Never: a value in the text of a statement.

use tokio_postgres::types::ToSql;

/// A value as a statement takes it.
type Value<'v> = Box<dyn ToSql + Sync + Send + 'v>;

/// Values of several rows.
#[derive(Default)]
pub(super) struct Columns<'v> {
    columns: Vec<Column<'v>>,
}

struct Column<'v> {
    name: &'static str,
    kind: &'static str,
    /// An array with a value for each row, rather than one for all of them.
    each: bool,
    values: Value<'v>,
}

impl<'v> Columns<'v> {
    /// A column with a value for each row.
    pub(super) fn each<T>(mut self, name: &'static str, kind: &'static str, values: Vec<T>) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'v,
    {
        self.columns.push(Column { name, kind, each: true, values: Box::new(values) });
        self
    }

    /// A column that is the same in all rows.
    pub(super) fn same<T>(mut self, name: &'static str, kind: &'static str, value: T) -> Self
    where
        T: ToSql + Sync + Send + 'v,
    {
        self.columns.push(Column { name, kind, each: false, values: Box::new(value) });
        self
    }
}

/// A statement that is put together, and what it is run with.
#[derive(Default)]
pub(super) struct Script<'v> {
    values: Vec<Value<'v>>,
}

impl<'v> Script<'v> {
    /// The place of a value in the statement.
    pub(super) fn value<T>(&mut self, kind: &str, value: T) -> String
    where
        T: ToSql + Sync + Send + 'v,
    {
        self.place(kind, Box::new(value))
    }

    fn place(&mut self, kind: &str, value: Value<'v>) -> String {
        self.values.push(value);
        format!("${}::{kind}", self.values.len())
    }

    /// The rows as something to select from; their columns are read as `r.name`.
    pub(super) fn rows(&mut self, of: Columns<'v>) -> String {
        let (mut arrays, mut names) = (Vec::new(), Vec::new());
        for Column { name, kind, values, .. } in of.columns {
            arrays.push(self.place(&format!("{kind}[]"), values));
            names.push(name);
        }
        format!("unnest({}) AS r ({})", arrays.join(", "), names.join(", "))
    }

    /// An `INSERT` of these rows, to be followed by a condition or more.
    pub(super) fn insert(&mut self, table: &str, of: Columns<'v>) -> String {
        let (mut names, mut selected) = (Vec::new(), Vec::new());
        let mut arrays = Columns::default();
        for column in of.columns {
            names.push(column.name);
            if column.each {
                selected.push(format!("r.{}", column.name));
                arrays.columns.push(column);
            } else {
                selected.push(self.place(column.kind, column.values));
            }
        }
        let (names, selected) = (names.join(", "), selected.join(", "));
        let rows = self.rows(arrays);
        format!("INSERT INTO {table} ({names}) SELECT {selected} FROM {rows}")
    }

    /// What the statement is run with.
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_in_the_order_in_which_they_go() {
        let mut script = Script::default();
        let columns = Columns::default()
            .each("key", "bigint", vec![1_i64, 2])
            .same("at", "smallint", 3_i16)
            .each("body", "bytea", vec![b"a".to_vec(), b"b".to_vec()]);
        let sql = script.insert("part", columns);
        assert_eq!(
            sql,
            "INSERT INTO part (key, at, body) SELECT r.key, $1::smallint, r.body \
             FROM unnest($2::bigint[], $3::bytea[]) AS r (key, body)"
        );
        assert_eq!(script.value("bool", true), "$4::bool");
        assert_eq!(script.values().len(), 4);
    }
}
