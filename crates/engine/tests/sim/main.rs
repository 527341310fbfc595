//! Seeded simulation of the engine: a memory store that fails and crashes, receivers that
//! misbehave, a clock that steps, and an oracle that knows what must hold.
//!
//! `PEYK_SIM_SEED=<n> cargo test -p peyk-engine --test sim -- --nocapture` plays one seed again,
//! step by step the same.
//! Never: sleep in real time, or draw chance from anything but the seed.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong with it")]
#![expect(unreachable_pub, reason = "one test binary; nothing is reached from outside")]

mod faults;
mod operator;
mod oracle;
mod plan;
mod receivers;
mod reckoning;
mod world;

/// Seeds of one run.
const SEEDS: u64 = 500;
/// Threads that play them.
const THREADS: u64 = 2;

fn chosen() -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the seed to play again is named by whoever runs the test"
    )]
    let seed = std::env::var("PEYK_SIM_SEED").ok()?;
    Some(seed.parse().expect("PEYK_SIM_SEED is a number"))
}

fn play(seed: u64) -> Result<world::Report, String> {
    let played = std::panic::catch_unwind(|| world::play(seed));
    let found = match played {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err(found)) => found,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic".to_owned())
        }
    };
    Err(format!(
        "PEYK_SIM_SEED={seed} cargo test -p peyk-engine --test sim -- --nocapture\n{found}"
    ))
}

/// RA-01 to RA-09, BO-04, BO-05, CB-01 to CB-10, DU-05 to DU-20, QF-01, RP-02, TM-01, TM-02 under
/// chance.
#[test]
fn nothing_is_lost_whatever_happens() {
    if let Some(seed) = chosen() {
        let report = play(seed).unwrap_or_else(|found| panic!("{found}"));
        println!("{report:#?}");
        return;
    }
    let threads: Vec<_> = (0..THREADS)
        .map(|first| {
            std::thread::spawn(move || {
                let mut total = world::Report::default();
                for seed in (first..SEEDS).step_by(THREADS as usize) {
                    total.add(&play(seed)?);
                }
                Ok(total)
            })
        })
        .collect();
    let mut total = world::Report::default();
    for thread in threads {
        let part: Result<world::Report, String> =
            thread.join().expect("no panic outside of a world");
        total.add(&part.unwrap_or_else(|found| panic!("{found}")));
    }
    println!("{total:#?}");
    total.has_seen_everything();
}

#[test]
fn the_same_seed_plays_the_same() {
    for seed in [1, 2, 3, 5, 8] {
        let (one, two) = (play(seed).unwrap(), play(seed).unwrap());
        assert_eq!(one.trace, two.trace, "seed {seed}");
    }
}
