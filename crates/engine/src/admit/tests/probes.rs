//! However results come in: never two probes at once.
//!
//! Never: a fixed order of events.

use proptest::prelude::*;

use super::*;

proptest! {
    /// However results come in: never two probes out at once, never a send while it is held, window
    /// within bounds.
    #[test]
    fn at_most_one_probe_is_out(
        steps in prop::collection::vec((0_u8..9, 0_usize..8, 0_u64..40), 1..300),
    ) {
        let mut bench = Bench::new(settings());
        let (mut out, mut now) = (Vec::<Pass>::new(), 0);
        for (step, which, secs) in steps {
            now += secs;
            if step < 4 {
                let decision = bench.gate.decide(u32::try_from(out.len()).unwrap(), at(now));
                let pass = bench.gate.begin(at(now));
                match decision {
                    Decision::Go => prop_assert!(pass.is_some_and(|pass| !pass.is_probe())),
                    Decision::Probe => prop_assert!(pass.is_some_and(|pass| pass.is_probe())),
                    Decision::Wait(Some(until)) => prop_assert!(until > at(now) && pass.is_none()),
                    Decision::Wait(None) => {}
                }
                if let Some(pass) = pass {
                    prop_assert!(!pass.is_probe() || !out.iter().any(Pass::is_probe));
                    out.push(pass);
                }
            } else if !out.is_empty() {
                let pass = out.swap_remove(which % out.len());
                let answers = [(200, 0), (500, 0), (429, 0), (429, 30), (401, 0)];
                let answer = answers[usize::from(step) - 4];
                bench.settle(&pass, (answer.0, answer.1, now), now);
            }
        }
    }
}
