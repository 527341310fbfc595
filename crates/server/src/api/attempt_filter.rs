//! Which attempts are asked for: the parameters that all lists of attempts share.
//!
//! Never: read a store.

use domain::ids::EndpointKey;
use store::history::AttemptFilter;

use super::messages::filter_of;
use crate::http::problem::Problem;
use crate::http::query::{Query, refuse};
use crate::spelling::one_of;

/// Reads the filter; `endpoint` was found by the caller.
pub(super) fn attempt_filter(
    query: &Query,
    endpoint: Option<EndpointKey>,
) -> Result<AttemptFilter, Problem> {
    let status = query.number::<u8>("status")?;
    if status.is_some_and(|status| status > 4) {
        return Err(refuse("status", &one_of(&["0", "1", "2", "3", "4"])));
    }
    let status_class = query.number::<u16>("status_code_class")?;
    if status_class.is_some_and(|class| class > 500 || class % 100 != 0) {
        let rule = one_of(&["0", "100", "200", "300", "400", "500"]);
        return Err(refuse("status_code_class", &rule));
    }
    Ok(AttemptFilter { endpoint, status, status_class, message: filter_of(query)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_or_refused() {
        let query = Query::parse("status=2&status_code_class=500&channel=c&event_types=a,b");
        let filter = attempt_filter(&query, Some(EndpointKey(1))).unwrap();
        assert_eq!((filter.status, filter.status_class), (Some(2), Some(500)));
        assert_eq!(filter.message.event_types, ["a", "b"]);
        for text in [
            "status=5",
            "status=x",
            "status_code_class=600",
            "status_code_class=404",
            "status_code_class=-100",
            "channel=a%00",
            "before=x",
            "after=2030",
        ] {
            let refused = attempt_filter(&Query::parse(text), None).unwrap_err();
            assert_eq!(refused.status().as_u16(), 422, "{text}");
        }
    }
}
