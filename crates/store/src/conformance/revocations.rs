//! What `Revocations` promises.
//!
//! Never: a case about what a token holds.

use std::time::Duration;

use domain::ids::PublicId;
use domain::limits::APP_TOKEN_MAX;
use resilience::Timestamp;

use super::world::World;
use super::{Case, cases};
use crate::revocations::{Expired, Revoked};

/// The suite.
pub const CASES: &[Case] = cases![
    a_token_stays_revoked_until_it_would_have_ended,
    what_was_expired_stays_so,
    only_what_says_more_is_kept,
    sessions_are_forgotten_once_none_can_be_good,
];

const APP: PublicId = PublicId::from_bytes([7; 20]);

async fn revoked(world: &World) -> Vec<Revoked> {
    world.stores.revocations.revocations().await.unwrap().0
}

async fn expired(world: &World) -> Vec<Expired> {
    world.stores.revocations.revocations().await.unwrap().1
}

fn expire(session: Option<&str>, issued_before: Timestamp, from: Timestamp) -> Expired {
    Expired { app: APP, session: session.map(str::to_owned), issued_before, from }
}

async fn a_token_stays_revoked_until_it_would_have_ended(mut world: World) {
    let until = |secs| world.now().plus(Duration::from_secs(secs));
    let short = Revoked { hash: [2; 32], until: until(5) };
    let long = Revoked { hash: [1; 32], until: Timestamp::MAX };
    for token in [&short, &long, &long] {
        world.stores.revocations.revoke(token.clone()).await.unwrap();
    }
    world.reopen();
    assert_eq!(revoked(&world).await, [long.clone(), short]);
    world.clock.advance(Duration::from_secs(6));
    let other = Revoked { hash: [3; 32], until: Timestamp::MAX };
    world.stores.revocations.revoke(other.clone()).await.unwrap();
    assert_eq!(revoked(&world).await, [long, other]);
}

async fn what_was_expired_stays_so(mut world: World) {
    let now = world.now();
    let all = expire(None, now, now.plus(Duration::from_secs(60)));
    let one = expire(Some("s"), now, now);
    world.stores.revocations.expire(vec![one.clone(), all.clone()]).await.unwrap();
    world.reopen();
    assert_eq!(expired(&world).await, [all, one]);
    assert_eq!(revoked(&world).await, []);
}

async fn only_what_says_more_is_kept(world: World) {
    let (now, later) = (world.now(), world.now().plus(Duration::from_secs(60)));
    let put = async |it: &Expired, kept: &[&Expired], why: &str| {
        world.stores.revocations.expire(vec![it.clone()]).await.unwrap();
        assert!(expired(&world).await.iter().eq(kept.iter().copied()), "{why}");
    };
    let (first, sooner) = (expire(None, now, later), expire(None, now, now));
    put(&first, &[&first], "there was none").await;
    put(&sooner, &[&sooner], "the same, but at once").await;
    put(&first, &[&sooner], "which says nothing new").await;
    let more = expire(None, later, later.plus(Duration::from_secs(1)));
    put(&more, &[&sooner, &more], "more of them, but later").await;
    let all = expire(None, later, now);
    put(&all, &[&all], "all of it").await;
}

async fn sessions_are_forgotten_once_none_can_be_good(world: World) {
    let now = world.now();
    let (one, all) = (expire(Some("s"), now, now), expire(None, now, now));
    world.stores.revocations.expire(vec![one, all.clone()]).await.unwrap();
    world.clock.advance(APP_TOKEN_MAX * 2 + Duration::from_secs(1));
    world.stores.revocations.expire(Vec::new()).await.unwrap();
    assert_eq!(expired(&world).await, [all]);
}
