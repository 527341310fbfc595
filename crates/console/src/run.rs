//! Carries one call out: asks first if something would be lost, follows pages, shows the answer.
//!
//! Never: a question without a terminal to answer it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::api::Api;
use crate::call::Call;
use crate::failure::Failure;
use crate::options::Paging;
use crate::show::{Out, Page, columns};
use crate::table::Table;

/// Rows of a page where all pages are read.
const ROWS_OF_ALL: u16 = 250;

/// Carries it out.
pub(crate) async fn carry_out(api: &Api, out: &Out, call: Call) -> Result<(), Failure> {
    if let Some(question) = &call.question {
        confirm(question, call.yes)?;
    }
    let answer = api.send(&call).await?;
    out.answer(&answer, &call.view)
}

/// Reads a page, or all of them.
pub(crate) async fn list(
    api: &Api,
    out: &Out,
    mut call: Call,
    paging: &Paging,
) -> Result<(), Failure> {
    let limit = paging.limit.or_else(|| paging.all.then_some(ROWS_OF_ALL));
    let mut table = Table::new(columns(&call.view).unwrap_or_default());
    let fixed = call.query.len();
    let mut iterator = paging.iterator.clone();
    loop {
        call.query.truncate(fixed);
        call = call.with("limit", limit).with("iterator", iterator.as_deref());
        let answer = api.send(&call).await?;
        if out.is_json() && !paging.all {
            return out.answer(&answer, &call.view);
        }
        let page: Page = answer.read()?;
        out.page(&mut table, &page)?;
        if page.done || page.iterator.is_none() {
            return Ok(());
        }
        if !paging.all {
            let next = page.iterator.unwrap_or_default();
            return out.note(&format!("there is more: --iterator {next}, or --all"));
        }
        if page.iterator == iterator {
            return Err(Failure::Other("the server's pages lead in a circle".to_owned()));
        }
        iterator = page.iterator;
    }
}

/// Asks whether something is to be done that cannot be undone.
fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let input = std::io::stdin();
    if !(input.is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::Usage(format!("to {what} without being asked, say --yes")));
    }
    let _closed = write!(std::io::stderr(), "Really {what}? [y/N] ");
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::Other("nothing was changed".to_owned()))
}
