use super::*;
use proptest::prelude::*;

/// A thread of the only engine.
pub fn one_of(thread: usize, threads: usize) -> Share {
    Share {
        thread,
        threads,
        part: Part::default(),
    }
}

/// Parts of several engines, which have all slots between them.
pub fn parts() -> impl Strategy<Value = Vec<Part>> {
    proptest::collection::vec(0usize..4, 1..12).prop_map(|owners| {
        let of = owners.len() as u32;
        let slots = |engine| -> Vec<u32> {
            let own = owners
                .iter()
                .zip(0..)
                .filter(|(owner, _)| **owner == engine);
            own.map(|(_, slot)| slot).collect()
        };
        let parts = (0..4).map(slots).filter(|slots| !slots.is_empty());
        parts.map(|slots| Part::new(&slots, of)).collect()
    })
}

/// The threads of all engines, the first with one, the next with two.
pub fn shares(parts: &[Part]) -> Vec<Share> {
    let of = |(place, part): (usize, &Part)| {
        let part = part.clone();
        (0..=place).map(move |thread| Share {
            thread,
            threads: place + 1,
            part: part.clone(),
        })
    };
    parts.iter().enumerate().flat_map(of).collect()
}

proptest! {
    #[test]
    fn each_thing_belongs_to_one_thread_of_one_engine(parts in parts(), things in 0u32..300) {
        let mut all: Vec<u64> = shares(&parts)
            .iter()
            .flat_map(|share| (0..share.of(things) as u64).map(|index| share.number(index)).collect::<Vec<_>>())
            .collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..u64::from(things)).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_of_an_engine_rise_and_are_as_many_as_it_counts(parts in parts(), things in 0u64..300) {
        for part in &parts {
            let count = part.count(things);
            prop_assert!((1..count).all(|here| part.number(here - 1) < part.number(here)));
            prop_assert!(count == 0 || part.number(count - 1) < things);
            prop_assert!(part.number(count) >= things);
        }
    }

    #[test]
    fn parts_add_up_to_one_and_no_two_threads_draw_the_same(parts in parts()) {
        let shares = shares(&parts);
        prop_assert!((shares.iter().map(|share| share.one_in().recip()).sum::<f64>() - 1.0).abs() < 1e-12);
        let mut streams: Vec<u64> = shares.iter().map(Share::stream).collect();
        streams.sort_unstable();
        streams.dedup();
        prop_assert_eq!(streams.len(), shares.len());
    }
}

#[test]
fn alone_an_engine_has_everything() {
    let part = Part::new(&[0], 1);
    assert_eq!(part, Part::default());
    assert_eq!((part.count(7), part.number(7)), (7, 7));
}
