//! A count for each step, silence too; and nothing of what is long over.

use super::{KEPT, Pulse, STEP};
use procession_kernel::Timestamp;

#[test]
fn each_step_has_its_count() {
    let mut pulse = Pulse::default();
    assert_eq!(pulse.line(Timestamp(0)), Vec::<u32>::new());
    for at in [0, 1, STEP * 3, STEP * 3 + 5, STEP * 3 + 9, STEP * 5] {
        pulse.beat(Timestamp(at), 1);
    }
    // The last step is not over.
    assert_eq!(pulse.line(Timestamp(STEP * 5 + 1)), [2, 0, 0, 3, 0]);
    assert_eq!(pulse.line(Timestamp(STEP * 7)), [2, 0, 0, 3, 0, 1, 0]);
}

#[test]
fn what_is_long_over_goes() {
    let mut pulse = Pulse::default();
    for step in 0..KEPT * 3 {
        pulse.beat(Timestamp(step * STEP), 1);
    }
    let line = pulse.line(Timestamp(KEPT * 3 * STEP));
    assert_eq!((line.len() as u64, line.iter().sum::<u32>() as u64), (KEPT, KEPT));
    let later = pulse.line(Timestamp(KEPT * 9 * STEP));
    assert_eq!((later.len() as u64, later.iter().sum::<u32>()), (KEPT, 0));
}
