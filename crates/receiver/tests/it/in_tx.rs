//! The record committed with the handler's own effects.

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use receiver::{
    IdempotencyLayer, IdempotencyStore as _, PgIdempotency, Running, ScopedKey, StoreError,
};
use testparts::Postgres;

use crate::support::{Handler, Server, app, pool, postgres};

/// Books one payment and the response in one transaction.
pub(crate) async fn book(url: &str, running: &Running, run: usize) -> Result<Bytes, StoreError> {
    let mut client = pool(url).get().await.unwrap();
    let tx = client.transaction().await.unwrap();
    tx.execute("INSERT INTO payment DEFAULT VALUES", &[]).await.unwrap();
    let response = Response::new(Bytes::from(format!("booked in run {run}")));
    PgIdempotency::in_tx(&tx).complete(running, &response).await?;
    tx.commit().await.unwrap();
    Ok(response.into_body())
}

struct World {
    parts: Postgres,
    url: String,
    handler: Handler,
    server: Server,
    layer: IdempotencyLayer<receiver::PgIdempotencyStore>,
}

/// A handler that books when it is let go; its first run panics after that if `panics`.
async fn world(panics: bool) -> World {
    let parts = Postgres::start();
    let url = parts.fresh_database();
    parts.sql(&url, "CREATE TABLE payment (id serial)");
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(postgres(&url).await).build().unwrap();
    let (counted, at) = (handler.clone(), url.clone());
    let handle = move |request: Request<Body>| {
        let (handler, url) = (counted.clone(), at.clone());
        async move {
            let running = request.extensions().get::<Running>().unwrap().clone();
            let run = handler.enter().await;
            let booked = book(&url, &running, run).await;
            assert!(!panics || run > 1, "after the commit");
            match booked {
                Ok(said) => Response::new(Body::from(said)),
                Err(error) => {
                    let failed = Response::builder().status(500);
                    failed.body(Body::from(error.to_string())).unwrap()
                }
            }
        }
    };
    let server = Server::start(app(layer.clone(), handle)).await;
    World { parts, url, handler, server, layer }
}

impl World {
    fn payments(&self) -> String {
        self.parts.sql(&self.url, "SELECT count(*) FROM payment")
    }
}

#[tokio::test]
async fn a_failure_after_the_commit_books_once() {
    let world = world(true).await;
    world.handler.release();
    assert_eq!(world.server.post("k", "body").await.text(), "handler_failed");
    let replay = world.server.post("k", "body").await;
    assert!(replay.is_replay());
    assert_eq!(replay.text(), "booked in run 1");
    assert_eq!((world.handler.runs(), world.payments().as_str()), (1, "1"));
}

#[tokio::test]
async fn whoever_lost_the_lease_cannot_commit() {
    let world = world(false).await;
    let first = world.server.posting("k", "body");
    world.handler.entered(1).await;
    let key = ScopedKey { scope: String::new(), key: "k".into() };
    assert!(world.layer.store().forget(&key).await.unwrap());
    let second = world.server.posting("k", "body");
    world.handler.entered(2).await;
    world.handler.release();
    world.handler.release();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.status, 500);
    assert!(first.text().starts_with("the lease was lost"), "{first:?}");
    assert_eq!(second.text(), "booked in run 2");
    assert_eq!(world.payments(), "1", "the first rolled back");
    assert_eq!(world.server.post("k", "body").await.body, second.body);
}
