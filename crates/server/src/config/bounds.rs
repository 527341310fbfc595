//! Bounds on what callers may make, which an operator may draw closer than the system does.
//!
//! In: settings as written. Out: numbers that are not above the system's own.
//! Never: lift a bound of the system.

use domain::limits;

use super::error::ConfigError;

/// Bounds on the numbers of things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Endpoints of an application.
    pub(crate) endpoints_per_app: usize,
    /// Event types that an endpoint filters on.
    pub(crate) event_types_per_endpoint: usize,
    /// Channels that an endpoint listens on.
    pub(crate) channels_per_endpoint: usize,
    /// Channels of a message.
    pub(crate) channels_per_message: usize,
}

impl Bounds {
    /// Takes each as `number` reads it, given its key and the most that it may be.
    pub(super) fn read(
        number: impl Fn(&str, usize) -> Result<usize, ConfigError>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoints_per_app: number(
                "limits.endpoints_per_app_max",
                limits::ENDPOINTS_PER_APP_MAX,
            )?,
            event_types_per_endpoint: number(
                "limits.event_types_per_endpoint_max",
                limits::EVENT_TYPES_PER_ENDPOINT_MAX,
            )?,
            channels_per_endpoint: number(
                "limits.channels_per_endpoint_max",
                limits::CHANNELS_PER_ENDPOINT_MAX,
            )?,
            channels_per_message: number(
                "limits.channels_per_message_max",
                limits::CHANNELS_PER_MESSAGE_MAX,
            )?,
        })
    }
}
