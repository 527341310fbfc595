//! The URL of a request from the adapter's base and the request's endpoint.
//!
//! The base's path is a prefix of all requests; `users`, `/users` and `users?page=2` all stay below
//! it. Queries of base, endpoint and request are joined in this order.
//! Never: leave the base, which would take credentials along; drop a part of either.

use url::Url;

/// Checks the base.
pub(super) fn base(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "must be an absolute URL")?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("must be an http or https URL");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold credentials; use auth");
    }
    Ok(url)
}

/// The whole URL of one request.
pub(super) fn join(
    base: &Url,
    endpoint: &str,
    query: &[(String, String)],
) -> Result<Url, &'static str> {
    let endpoint = endpoint.split_once('#').map_or(endpoint, |(kept, _)| kept);
    let (path, own_query) = match endpoint.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (endpoint, None),
    };
    if path.split('/').next().is_some_and(|first| first.ends_with(':')) && path.contains("://") {
        return Err("endpoint must be relative to the base URL");
    }
    let mut url = base.clone();
    let root = base.path().trim_end_matches('/');
    let path = path.trim_start_matches('/');
    if !path.is_empty() {
        url.set_path(&format!("{root}/{path}"));
        let below = url.path().strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        if !below {
            return Err("endpoint must not leave the base URL");
        }
    }
    let parts = [base.query(), own_query].into_iter().flatten().filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("&");
    url.set_query((!joined.is_empty()).then_some(&joined));
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
