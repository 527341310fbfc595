//! The three date shapes, whole seconds, and everything that is neither.

use proptest::prelude::*;

use super::RetryAfter::{Absent, Unusable, Wait};
use super::*;

/// 2026-08-27T11:10:53Z, a Thursday.
const NOW: Timestamp = Timestamp::from_secs(1_787_829_053);

fn one(value: &str) -> RetryAfter {
    parse([value.as_bytes()], NOW)
}

const fn wait(secs: u64) -> RetryAfter {
    Wait(Duration::from_secs(secs))
}

#[test]
fn ra_01_all_three_date_shapes_are_read() {
    for value in [
        "Thu, 27 Aug 2026 11:12:53 GMT",
        "Thursday, 27-Aug-26 11:12:53 GMT",
        "Thu Aug 27 11:12:53 2026",
    ] {
        assert_eq!(one(value), wait(120), "{value}");
    }
    let later = NOW.plus(Duration::from_micros(1));
    let left = parse([&b"Thu, 27 Aug 2026 11:12:53 GMT"[..]], later);
    assert_eq!(left, Wait(Duration::from_micros(119_999_999)), "to the microsecond");
}

#[test]
fn ra_02_what_cannot_be_read_is_told_and_asks_for_nothing() {
    for value in [
        "soon",
        "",
        "1,5",
        "0x10",
        "  ",
        "∞",
        "5, 60",
        "5;",
        "+5",
        "1_000",
        "5 s",
        "٣",
        "\u{b}5",
        "5\n",
        "\u{c}Thu, 27 Aug 2026 11:12:53 GMT",
        "Thu, 27 Aug 2026 11:12:53 CET",
        "Thu, 31 Feb 2030 11:12:53 GMT",
        "Mon, 27 Aug 2026 11:12:53 GMT",
        "2026-08-27T11:12:53Z",
        "Thu, 27 Aug 2026 24:00:00 GMT",
    ] {
        assert_eq!(one(value), Unusable, "{value:?}");
    }
    assert_eq!(parse([&[0xff, 0x00][..]], NOW), Unusable);
    assert_eq!(parse([], NOW), Absent);
}

#[test]
fn ra_02_of_several_lines_the_longest_usable_counts() {
    assert_eq!(parse([&b"5"[..], b"60"], NOW), wait(60));
    assert_eq!(parse([&b"60"[..], b"5"], NOW), wait(60));
    assert_eq!(parse([&b"60"[..], b"Thu, 27 Aug 2026 11:12:53 GMT"], NOW), wait(120));
    assert_eq!(parse([&b"soon"[..], b"5"], NOW), wait(5));
    assert_eq!(parse([&b"5"[..], b"-1"], NOW), wait(5));
    assert_eq!(parse([&b"soon"[..], b"0"], NOW), Unusable);
}

#[test]
fn ra_03_negative_past_and_zero_ask_for_no_wait() {
    for value in [
        "-5",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Thu, 27 Aug 2026 11:10:53 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "0",
        "000",
    ] {
        assert_eq!(one(value), Unusable, "{value}");
    }
}

#[test]
fn ra_05_huge_values_are_long_waits() {
    assert_eq!(one("86400"), wait(86_400));
    assert_eq!(one("31536000"), wait(31_536_000));
    assert_eq!(one("4294967296"), wait(4_294_967_296));
    assert_eq!(one("9223372036854775807"), wait(9_223_372_036_854_775_807));
    assert_eq!(one("18446744073709551615"), wait(u64::MAX));
    assert_eq!(one("18446744073709551616"), wait(u64::MAX));
    assert_eq!(one(&"9".repeat(400)), wait(u64::MAX));
    assert_eq!(one(&format!("{}7", "0".repeat(400))), wait(7));
    let Wait(far) = one("Fri, 31 Dec 9999 23:59:59 GMT") else { panic!("a valid date") };
    assert!(far > Duration::from_secs(7_900 * 365 * 86_400));
    let before_all =
        parse([&b"Fri, 31 Dec 9999 23:59:59 GMT"[..]], Timestamp::from_micros(i64::MIN));
    assert!(matches!(before_all, Wait(_)));
}

#[test]
fn ra_08_fractions_and_float_words_are_not_seconds() {
    for value in ["1.5", "0.2", "1e309", "nan", "inf", "NaN", "-inf", "1e3", ".5", "5."] {
        assert_eq!(one(value), Unusable, "{value}");
    }
}

#[test]
fn optional_white_space_is_cut() {
    for value in [" 5", "5\t", " \t 5 \t "] {
        assert_eq!(one(value), wait(5));
    }
    assert_eq!(one(" Thu, 27 Aug 2026 11:12:53 GMT\t"), wait(120));
}

fn good() -> Vec<Vec<u8>> {
    [
        "120",
        "18446744073709551616",
        "Thu, 27 Aug 2026 11:12:53 GMT",
        "Thursday, 27-Aug-26 11:12:53 GMT",
        "Thu Aug 27 11:12:53 2026",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_bytes_at_any_time_are_survived(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..4),
        now in any::<i64>(),
    ) {
        let answer = parse(lines.iter().map(Vec::as_slice), Timestamp::from_micros(now));
        prop_assert_eq!(answer == Absent, lines.is_empty());
        prop_assert!(answer != Wait(Duration::ZERO));
    }

    #[test]
    fn fuzz_of_retry_after(lines in prop::collection::vec(testparts::spoilt(good()), 1..4)) {
        let answer = parse(lines.iter().map(Vec::as_slice), NOW);
        prop_assert!(answer != Absent && answer != Wait(Duration::ZERO));
        let spaced = lines.iter().rev().map(|line| [b" ", line.as_slice(), b"\t "].concat());
        let spaced: Vec<_> = spaced.collect();
        let same = parse(spaced.iter().map(Vec::as_slice), NOW);
        prop_assert_eq!(same, answer, "neither order nor white space around a line matters");
    }

    #[test]
    fn whole_seconds_are_taken_as_they_are(secs in 1_u64..) {
        prop_assert_eq!(one(&secs.to_string()), wait(secs));
    }
}
