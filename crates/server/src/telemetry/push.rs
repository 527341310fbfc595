//! Sends metrics to those who do not scrape: datagrams to an agent of DogStatsD, requests of the
//! OpenTelemetry protocol to a collector.
//!
//! One push after the other, at an interval; the last one when the server stops. Whoever does not
//! take it is told of in the log once, and again when it works.
//! Never: hold up anything else, or show an answer's text.

use std::time::Duration;

use resilience::Timestamp;
use tokio::net::{UdpSocket, lookup_host};

use super::collector::{Collector, Fault, within};
use super::dogstatsd::datagrams;
use super::otlp::{Since, request};
use super::samples::{Metric, read};
use crate::config::telemetry::{DogStatsD, Push};

/// Sends to all that are named.
pub(crate) struct Pusher {
    push: Push,
    started: Timestamp,
    /// What the agent was told of.
    told: Vec<Metric>,
    collector: Option<Collector>,
    dogstatsd: Fault,
    otlp: Fault,
}

impl Pusher {
    /// `None` where nobody is named.
    pub(crate) fn new(push: &Push, started: Timestamp) -> Option<Self> {
        if push.dogstatsd.is_none() && push.otlp.is_none() {
            return None;
        }
        Some(Self {
            push: push.clone(),
            started,
            told: Vec::new(),
            collector: push.otlp.clone().map(Collector::new),
            dogstatsd: Fault::default(),
            otlp: Fault::default(),
        })
    }

    /// How often.
    pub(crate) const fn every(&self) -> Duration {
        self.push.every
    }

    /// Sends what `/metrics` says now.
    pub(crate) async fn push(&mut self, text: &str, now: Timestamp) {
        let metrics = read(text);
        if let Some(agent) = &self.push.dogstatsd {
            let sent = within(send(agent, &metrics, &self.told)).await;
            let told = sent.as_ref().err().map(String::as_str);
            self.dogstatsd.tell(("telemetry.dogstatsd.address", "metrics"), told);
            if sent.is_ok() {
                self.told.clone_from(&metrics);
            }
        }
        if let Some(collector) = &self.collector {
            let body = request(&metrics, Since { started: self.started, now });
            let sent = collector.post(body).await;
            let told = sent.as_ref().err().map(|refused| refused.text.as_str());
            self.otlp.tell(("telemetry.otlp.url", "metrics"), told);
        }
    }
}

async fn send(agent: &DogStatsD, now: &[Metric], before: &[Metric]) -> Result<(), String> {
    let text = |fault: std::io::Error| fault.to_string();
    let mut found = lookup_host(&agent.address).await.map_err(text)?;
    let address = found.next().ok_or("its name has no address")?;
    let here = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(here).await.map_err(text)?;
    socket.connect(address).await.map_err(text)?;
    for datagram in datagrams(now, before, &agent.naming) {
        socket.send(datagram.as_bytes()).await.map_err(text)?;
    }
    Ok(())
}
