//! A client of the HTTP API.
//!
//! In: a [`Call`], or its parts. Out: the body of the answer, or why there is none.
//! Never: a second try; whoever calls decides.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use url::Url;

use crate::body::Body;
use crate::call::Call;
use crate::failure::{Failure, root};
use crate::problem;
use crate::web::{self, Web};

/// Where `peyk serve` listens unless it is told otherwise.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:8071";

/// No answer is complete later than this.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No answer is larger: a page ends early at 8 MiB of payloads, which may be escaped.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A server and a token for it.
pub(crate) struct Api {
    web: Web,
    base: Url,
    token: String,
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as a value.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|_| {
            let said = problem::line(self.status, &self.body);
            Failure::Other(said)
        })
    }
}

impl Api {
    /// For the server at this address.
    pub(crate) fn new(server: &str, token: &str) -> Result<Self, Failure> {
        let base = parse(server).map_err(|rule| Failure::Usage(format!("--server {rule}")))?;
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::Usage("--token must be what `peyk token` prints".to_owned()));
        }
        Ok(Self { web: web::client(base.scheme() == "https"), base, token: token.to_owned() })
    }

    /// The server's address.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// The application that the token is of, if it says one. The server checks what it says.
    pub(crate) fn app_of_token(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Claims {
            sub: String,
        }
        let claims = self.token.split('.').nth(1)?;
        let claims = data_encoding::BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?;
        let Claims { sub } = serde_json::from_slice(&claims).ok()?;
        sub.starts_with("app_").then_some(sub)
    }

    /// Sends a call.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
        let mut url = self.url(&path)?;
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let key = call.idempotency_key.as_deref();
        let body = call.body.as_ref().map(Body::bytes);
        self.ask(call.method.clone(), url, body, key).await
    }

    /// Sends a request by its path, and gives what comes back.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.ask(method, url, body, None).await
    }

    /// What comes back for a request without a body, though it be a refusal.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Answer, Failure> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(method, url, None, None).await
    }

    /// Reads something that may not be there.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &[&str],
    ) -> Result<Option<T>, Failure> {
        let response = self.exchange(Method::GET, self.url(path)?, None, None).await?;
        if response.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        accepted(response)?.read().map(Some)
    }

    fn url(&self, path: &[&str]) -> Result<Url, Failure> {
        // No path can name these, they would lead somewhere else.
        if let Some(bad) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(Failure::Usage(format!("`{bad}` is no id, no uid and no name")));
        }
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        Ok(url)
    }

    async fn ask(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        key: Option<&str>,
    ) -> Result<Answer, Failure> {
        accepted(self.exchange(method, url, body, key).await?)
    }

    async fn exchange(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        key: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::USER_AGENT, concat!("peyk-console/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::from(body.unwrap_or_default()));
        let request = request.map_err(|fault| Failure::Usage(fault.to_string()))?;
        let whole = async {
            let response = self.web.request(request).await.map_err(|fault| self.lost(&fault))?;
            let status = response.status();
            Ok(Answer { status, body: self.whole(response).await? })
        };
        let timed = tokio::time::timeout(TIMEOUT, whole).await;
        timed.map_err(|_| self.unreachable("no answer within a minute"))?
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, Failure> {
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|fault| self.unreachable(&format!("the answer broke off: {fault}")))
    }

    fn lost(&self, fault: &hyper_util::client::legacy::Error) -> Failure {
        let why = root(fault);
        if why.contains("refused") {
            let hint = "is `peyk serve` running there? --server or PEYK_SERVER names another";
            return self.unreachable(&format!("{why}; {hint}"));
        }
        self.unreachable(&why)
    }

    fn unreachable(&self, why: &str) -> Failure {
        let at = self.base.as_str().trim_end_matches('/');
        Failure::Unreachable(format!("no answer from {at}: {why}"))
    }
}

/// An answer, if it is no refusal.
pub(crate) fn accepted(answer: Answer) -> Result<Answer, Failure> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    Err(Failure::Refused(problem::line(answer.status, &answer.body)))
}

/// An `http` or `https` address without a user, a query or a fragment.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)
        .map_err(|fault| format!("must be a URL such as {SERVER_DEFAULT}: {fault}"))?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if is_plain { Ok(url) } else { Err("must be http:// or https://, a host, no user".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(server: &str) -> Api {
        Api::new(server, "token").unwrap()
    }

    #[test]
    fn a_path_is_encoded_and_leads_nowhere_else() {
        let url = |server, path: &[&str]| api(server).url(path).unwrap().to_string();
        assert_eq!(
            url("http://h:1", &["app", "a b/../c?"]),
            "http://h:1/api/v1/app/a%20b%2F..%2Fc%3F"
        );
        assert_eq!(url("https://h/proxy/", &["app"]), "https://h/proxy/api/v1/app");
        for bad in ["", ".", ".."] {
            assert!(matches!(api("http://h").url(&["app", bad]), Err(Failure::Usage(_))));
        }
    }

    #[test]
    fn a_token_of_an_application_says_which() {
        let of = |claims: &str| {
            let token = format!("e.{}.s", data_encoding::BASE64URL_NOPAD.encode(claims.as_bytes()));
            Api::new("http://h", &token).unwrap().app_of_token()
        };
        assert_eq!(of(r#"{"sub":"app_1","org":"org_1"}"#).as_deref(), Some("app_1"));
        for none in [r#"{"sub":"org_1"}"#, "{}", "no claims"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(Api::new("http://h", "token").unwrap().app_of_token(), None);
    }

    #[test]
    fn what_is_no_server_or_no_token_is_wrong_usage() {
        for server in ["", "localhost:8071", "ftp://h", "http://u:p@h", "http://h/#x"] {
            assert!(matches!(Api::new(server, "t"), Err(Failure::Usage(_))), "{server}");
        }
        for token in ["", " ", "a b", "a\nb"] {
            assert!(matches!(Api::new("http://h", token), Err(Failure::Usage(_))), "{token}");
        }
    }
}
