//! The delivery engine: a message comes in, attempts go out, what follows is recorded.
//!
//! Stages never import each other; `run` alone knows their order. Stores and transport are traits
//! here.
//! Never: name a concrete store, parse HTTP from callers, read the environment.

pub mod admit;
pub mod alert;
pub mod announce;
mod chores;
pub mod deliver;
mod elsewhere;
pub mod engine;
pub mod events;
pub mod figures;
pub mod forward;
pub mod ingest;
pub mod lanes;
pub mod mail;
pub mod parts;
pub mod record;
pub mod roster;
pub mod run;
pub mod settings;
pub mod tasks;
pub mod throttle;
pub mod trace;
pub mod transport;

pub use admit::{Held, HeldBy};
pub use engine::{Engine, Running};
pub use parts::{BreakerView, ByHand, NextSend, Parts, Paused, Situation, Stores};
pub use settings::Settings;
