//! Drives a Peyk with the published client for Rust: its operations, and what is delivered.
//!
//! `SVIX_SERVER_URL` and `SVIX_TOKEN` say where. The server needs a scratch directory, leave to
//! reach loopback, two sends in all and a quick retry.
//! Never: decide by more than what the client gives back.

mod bench;
mod deliveries;
mod directory;
mod receiver;

use std::time::Duration;

use svix::api::{Svix, SvixOptions};
use svix::models;

use bench::{Bench, refused, text};
use receiver::Receiver;

async fn tokens(bench: &Bench) -> svix::Result<()> {
    let auth = bench.svix.authentication();
    let access = models::AppPortalAccessIn::new();
    let opened = auth.app_portal_access(text("shop"), access.clone(), None).await?;
    let owner = bench.svix.with_token(opened.token);
    assert_eq!(owner.application().get(text("shop")).await?.name, "Shop");
    assert_eq!(refused(owner.application().list(None).await), 403);
    owner.authentication().logout(None).await?;
    assert_eq!(refused(owner.application().get(text("shop")).await), 401);
    let next = auth.app_portal_access(text("shop"), access, None).await?;
    let next = bench.svix.with_token(next.token);
    next.application().get(text("shop")).await?;
    let all = models::ApplicationTokenExpireIn::new();
    auth.expire_all(text("shop"), all, None).await?;
    assert_eq!(refused(next.application().get(text("shop")).await), 401);
    assert_eq!(refused(auth.logout(None).await), 400);
    let gone = bench.svix.integration().list(text("shop"), None).await;
    assert_eq!(refused(gone), 404, "what is not served");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> svix::Result<()> {
    let set = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let options = SvixOptions {
        server_url: Some(set("SVIX_SERVER_URL")),
        retry_schedule: Some(vec![Duration::from_millis(10); 2]),
        ..SvixOptions::default()
    };
    let svix = Svix::new(set("SVIX_TOKEN"), Some(options));
    let bench = Bench { svix, receiver: Receiver::start().await };
    directory::all(&bench).await?;
    println!("  directory");
    deliveries::all(&bench).await?;
    println!("  deliveries");
    tokens(&bench).await?;
    println!("  tokens");
    Ok(())
}
