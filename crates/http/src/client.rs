//! The adapter: a client for one API.
//!
//! A request runs through `send` (once) and `attempt` (each time); the other files are what they
//! work with.
//! Never: hold what belongs to one request.

mod adapter;
mod address;
mod attempt;
mod auth;
mod body;
mod builder;
mod context;
mod correlation;
mod error;
mod ids;
mod interceptor;
mod job;
mod keys;
mod observer;
mod payload;
mod request;
#[cfg(feature = "reqwest")]
mod reqwest;
mod response;
mod send;
mod settings;
mod transport;

mod validate;
mod within;

#[cfg(feature = "reqwest")]
pub use self::reqwest::Reqwest;
pub use adapter::HttpAdapter;
pub use auth::{ApiKey, Basic, Bearer};
pub use body::Body;
pub use builder::HttpAdapterBuilder;
pub use context::Context;
pub use error::{HttpError, HttpErrorKind};
pub use interceptor::{Flow, Interceptor};
pub use keys::IdempotencyKeys;
pub use observer::HttpObserver;
pub use request::RequestBuilder;
pub use response::Response;
pub use settings::Order;
pub use validate::{Invalid, OrInvalid};
