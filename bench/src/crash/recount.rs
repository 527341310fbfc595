//! Attempts of an endpoint, counted row by row: what figures are held against.
//!
//! Never: a count that the server made.

use crate::api::Session;
use crate::fault::Result;

/// Those that were answered 2xx, and all.
pub(super) async fn attempts(session: &mut Session, app: &str, endpoint: &str) -> Result<[u64; 2]> {
    let (mut good, mut all) = (0, 0);
    let path = format!("/api/v1/app/{app}/attempt/endpoint/{endpoint}?limit=250");
    let mut next = path.clone();
    loop {
        let page = session.get(&next).await?;
        let rows = page["data"].as_array().map_or(&[][..], Vec::as_slice);
        all += rows.len() as u64;
        good += rows.iter().filter(|row| row["status"] == 0).count() as u64;
        match page["iterator"].as_str() {
            Some(iterator) if page["done"] == false => next = format!("{path}&iterator={iterator}"),
            _ => return Ok([good, all]),
        }
    }
}
