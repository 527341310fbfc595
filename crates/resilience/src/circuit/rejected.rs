//! Why a call was not let through.
//!
//! Never: be made for a call that was.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Which rule kept a call back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The open time is not over.
    Open,
    /// As many probes as may be are out.
    ProbeInFlight,
    /// It is forced open.
    Forced,
}

/// A call that a breaker did not let through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// Which breaker.
    pub breaker: Arc<str>,
    /// When to ask again; none where nobody can know.
    pub retry_after: Option<Duration>,
    /// Which rule.
    pub reason: RejectReason,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            RejectReason::Open => "is open",
            RejectReason::ProbeInFlight => "waits for a probe",
            RejectReason::Forced => "is forced open",
        };
        write!(f, "circuit breaker {} {why}", self.breaker)?;
        match self.retry_after {
            Some(wait) => write!(f, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for Rejected {}
