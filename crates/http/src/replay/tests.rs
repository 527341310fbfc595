//! Bodies that are sent again, and those that are not.

use std::convert::Infallible;
use std::future::poll_fn;

use http_body_util::{BodyExt, Full, StreamBody};

use super::*;

async fn kept<B: Body>(body: B, bytes_max: u64) -> Replay<B> {
    match Gather::begin(body, bytes_max) {
        Ok(mut gather) => poll_fn(|cx| gather.poll(cx)).await,
        Err(replay) => replay,
    }
}

/// A body in pieces, that says how long it is or does not.
struct Pieces {
    pieces: VecDeque<Result<Frame<Bytes>, &'static str>>,
    announced: Option<u64>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.pieces.pop_front())
    }

    fn size_hint(&self) -> SizeHint {
        self.announced.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn pieces(texts: &[&'static str], announced: Option<u64>) -> Pieces {
    let data = |text: &&'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
    Pieces { pieces: texts.iter().map(data).collect(), announced }
}

#[tokio::test]
async fn a_body_up_to_the_limit_is_kept_and_equal_each_time() {
    const LIMIT: usize = 64 << 10;
    for (bytes, keeps) in [(0, true), (LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false)] {
        let sent = Bytes::from(vec![b'x'; bytes]);
        let mut replay = kept(Full::new(sent.clone()), LIMIT as u64).await;
        assert_eq!(replay.is_replayable(), keeps, "{bytes}");
        for time in 0..3 {
            let body = replay.next();
            assert_eq!(body.is_some(), keeps || time == 0, "{bytes}, time {time}");
            let Some(body) = body else { continue };
            assert_eq!(body.size_hint().exact(), Some(bytes as u64));
            assert_eq!(body.collect().await.unwrap().to_bytes(), sent);
        }
    }
}

#[tokio::test]
async fn pieces_and_trailers_are_put_together() {
    let mut body = pieces(&["one ", "two ", "three"], Some(13));
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "6".parse().unwrap());
    body.pieces.push_back(Ok(Frame::trailers(trailers.clone())));
    let mut replay = kept(body, 13).await;
    for _ in 0..2 {
        let sent = replay.next().unwrap().collect().await.unwrap();
        assert_eq!(sent.trailers(), Some(&trailers));
        assert_eq!(sent.to_bytes(), "one two three");
    }
}

#[tokio::test]
async fn what_has_no_length_is_passed_on_as_it_comes() {
    let endless = StreamBody::new(NeverReady);
    let replay = kept(endless, 100).await;
    assert!(!replay.is_replayable(), "and was not waited for");
}

struct NeverReady;

impl futures_core::Stream for NeverReady {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_body_longer_than_it_said_is_sent_once_and_whole() {
    let mut replay = kept(pieces(&["12345", "67890", "abc"], Some(5)), 8).await;
    assert!(!replay.is_replayable());
    let body = replay.next().unwrap();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "1234567890abc");
    assert!(replay.next().is_none());
}

#[tokio::test]
async fn a_body_that_breaks_breaks_at_the_same_place_below() {
    let mut body = pieces(&["12345"], Some(10));
    body.pieces.push_back(Err("broken"));
    let mut replay = kept(body, 10).await;
    let mut sent = replay.next().unwrap();
    assert_eq!(sent.frame().await.unwrap().unwrap().into_data().unwrap(), "12345");
    assert_eq!(sent.frame().await.unwrap().unwrap_err(), "broken");
}
