//! Headers of callers, good and bad, and the ids that follow.
//!
//! Never: a header that the specification does not know.

use super::*;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn read(parent: &str, states: &[&str]) -> Option<Given> {
    let parents = std::iter::once(parent.as_bytes());
    Given::read(parents, states.iter().map(|state| state.as_bytes()))
}

#[test]
fn a_parent_is_read_as_the_specification_has_it() {
    let given = read(GOOD, &[]).unwrap();
    assert_eq!(given.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!((given.parent.to_string().as_str(), given.flags), ("00f067aa0ba902b7", 1));
    let of = |text: String| read(&text, &[]).map(|given| given.flags);
    for (text, flags) in [
        (GOOD.replace("-01", "-00"), Some(0)),
        // Unknown flags are not handed on.
        (GOOD.replace("-01", "-ff"), Some(3)),
        (GOOD.replacen("00", "cc", 1), Some(1)),
        (GOOD.replacen("00", "cc", 1) + "-more", Some(1)),
        (GOOD.replacen("00", "cc", 1) + ".more", None),
        (GOOD.to_owned() + "-more", None),
        (GOOD.replacen("00", "ff", 1), None),
        (GOOD.to_uppercase(), None),
        (GOOD[..54].to_owned(), None),
        (GOOD.replace('-', "_"), None),
        (GOOD.replace("4bf92f", "4bf92x"), None),
        (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
        (format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16)), None),
        ("é".repeat(28), None),
        (String::new(), None),
    ] {
        assert_eq!(of(text.clone()), flags, "{text}");
    }
    let twice = [GOOD.as_bytes(); 2].into_iter();
    assert_eq!(Given::read(twice, std::iter::empty()), None, "which of them is meant is not known");
    assert_eq!(Given::read(std::iter::empty(), std::iter::once(&b"a=1"[..])), None);
}

#[test]
fn a_state_is_kept_in_bounds_or_not_at_all() {
    let state = |states: &[&str]| read(GOOD, states).unwrap().state;
    assert_eq!(state(&["rojo=00f067aa0ba902b7", " ,congo=t61rcWkgMzE\t,"]), {
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
    });
    assert_eq!(state(&["a@b=c d"]), "a@b=c d");
    let many = |count: usize| {
        let members: Vec<_> = (0..count).map(|number| format!("k{number}=v")).collect();
        members.join(",")
    };
    assert_eq!(state(&[&many(32)]), many(32));
    for bad in [&many(33), "a", "A=1", "=1", "a=", "a=b=c", "a=1,a=2", "a=é", "a b=1", "*a=1"] {
        assert_eq!(state(&[bad]), "", "{bad}");
    }
    // Long ones go first, then those at the end.
    let (long, short) = (format!("long={}", "x".repeat(200)), format!("s={}", "y".repeat(100)));
    let five: Vec<_> = (0..5).map(|number| format!("k{number}={}", "z".repeat(97))).collect();
    assert_eq!(state(&[&long, &five.join(",")]), five.join(","));
    let six = [&five.join(","), &short[..]].join(",");
    assert_eq!(state(&[&six]), five.join(","));
    assert!(five.join(",").len() <= STATE_BYTES_MAX && six.len() > STATE_BYTES_MAX);
}

#[test]
fn a_trace_that_begins_here_follows_from_the_message() {
    let (message, endpoint) = (PublicId::new(7 << 24, [9; 12]), PublicId::new(3, [1; 12]));
    let trace = Trace::of(&message, None);
    assert_eq!(trace.id().to_string(), "07000000090909090909090909090909");
    assert_eq!(Trace::of(&PublicId::new(0, [0; 12]), None).id().0[15], 1, "no id is all zero");
    let spans = [trace.accepted(), trace.attempt(&endpoint, 1), trace.attempt(&endpoint, 2)];
    assert!(spans.iter().all(|span| spans.iter().filter(|other| span == *other).count() == 1));
    assert_eq!(trace.attempt(&endpoint, 2), spans[2]);
    assert_ne!(trace.attempt(&message, 2), spans[2]);
    let parent = trace.parent(spans[0], true);
    assert!(parent.ends_with("-01") && read(&parent, &[]).is_some(), "{parent}");
    assert!(trace.parent(spans[0], false).ends_with("-00"));
    assert_eq!((trace.caller(), trace.parent_given()), (None, None));
}

#[test]
fn a_trace_that_was_given_goes_on_as_its_caller_says() {
    let message = PublicId::new(7, [9; 12]);
    for (text, is_sampled) in [(GOOD.to_owned(), true), (GOOD.replace("-01", "-02"), false)] {
        let given = read(&text, &["a=1"]).unwrap();
        let trace = Trace::of(&message, Some(&given));
        assert_eq!((trace.id(), trace.caller()), (given.trace, Some(given.parent)));
        // Whatever the share of those that begin here.
        assert_eq!((trace.is_sampled(0), trace.is_sampled(SHARE_OF)), (is_sampled, is_sampled));
        assert_eq!((trace.state(), trace.parent_given()), ("a=1", Some(text.clone())));
        let parent = trace.parent(trace.accepted(), is_sampled);
        assert_eq!((&parent[..36], &parent[52..]), (&text[..36], &text[52..]));
    }
}

#[test]
fn a_share_of_the_traces_that_begin_here_is_sampled() {
    let sampled = |share: u32| {
        let ids = (0..20_000_u64).map(|number| {
            let random = Uuid::new_v5(&Uuid::nil(), &number.to_be_bytes());
            let mut bytes = [0; 12];
            bytes[..6].copy_from_slice(&random.as_bytes()[..6]);
            bytes[6..].copy_from_slice(&random.as_bytes()[10..]);
            PublicId::new(number, bytes)
        });
        ids.filter(|id| Trace::of(id, None).is_sampled(share)).count()
    };
    assert_eq!((sampled(0), sampled(SHARE_OF)), (0, 20_000));
    let tenth = sampled(SHARE_OF / 10);
    assert!((1_800..2_200).contains(&tenth), "{tenth}");
}
