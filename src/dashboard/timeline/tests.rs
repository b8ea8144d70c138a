//! However many bars there are, no more than were asked for are left, and none is lost.

use super::{Bar, fold};
use procession_kernel::Timestamp;

fn bars(members: u32, each: u64) -> Vec<Bar> {
    let bar = |member, at| Bar {
        member,
        what: "stage",
        stage: Some("Work".to_owned()),
        ending: Some("next"),
        attempt: Some(1),
        from: Timestamp(at * 10),
        to: Timestamp(at * 10 + 5),
        count: 1,
    };
    (0..members)
        .flat_map(|member| (0..each).map(move |at| bar(member, at)))
        .collect()
}

#[test]
fn a_few_bars_stay_as_they_are() {
    assert_eq!(fold(bars(2, 3), 6), (bars(2, 3), false));
}

#[test]
fn many_bars_are_folded_within_their_members() {
    for most in [1, 3, 7, 50] {
        let (folded, is_folded) = fold(bars(3, 40), most);
        assert!(is_folded && folded.len() <= most, "{} bars of {most}", folded.len());
        if most >= 3 {
            assert_eq!(folded.iter().map(|bar| bar.count).sum::<usize>(), 120);
            assert!(folded.iter().all(|bar| bar.to <= Timestamp(395)));
        }
    }
}
