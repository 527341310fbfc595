//! For the tests of those who use the adapter: a transport that follows a script, and spies.
//!
//! Never: part of a program; a broken expectation panics.

mod mock;
mod spy;

pub use mock::{MockEndpoint, MockReply, MockTransport, RecordedCall};
pub use spy::{InterceptorEvent, ObserverEvent, SpyInterceptor, SpyObserver};
