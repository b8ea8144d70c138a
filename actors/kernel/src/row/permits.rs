//! The permits of a row: its own, which it holds for life or while it is active, and those of one stage, which are taken
//! before the stage is called and given back when its attempt ends.

use super::Row;
use crate::id::LimitKey;

impl Row {
    /// Returns `true` if it holds the permits that its next stage or undo needs beside its own.
    #[must_use]
    pub fn has_stage_permits(&self) -> bool {
        self.stage_permits || self.stage_limits.is_empty()
    }

    /// Returns the limits whose permits it holds.
    #[must_use]
    pub fn held_limits(&self) -> Vec<LimitKey> {
        let own: &[LimitKey] = if self.holds { &self.limits } else { &[] };
        let stage: &[LimitKey] = if self.stage_permits { &self.stage_limits } else { &[] };
        own.iter().chain(stage).cloned().collect()
    }

    /// Returns the limits whose permits its next stage needs and it does not hold.
    pub fn lacking_limits(&self) -> impl Iterator<Item = &LimitKey> {
        let own: &[LimitKey] = if self.holds { &[] } else { &self.limits };
        own.iter().chain(self.lacking_stage_limits())
    }

    /// Returns the limits whose permits its next undo needs and it does not hold. An undo needs no permit that the
    /// procedure holds for itself.
    pub fn lacking_stage_limits(&self) -> impl Iterator<Item = &LimitKey> {
        let stage: &[LimitKey] = if self.stage_permits { &[] } else { &self.stage_limits };
        stage.iter()
    }

    /// Names the limits of the next stage or undo. The procedure's own limits are left out: the limiter counts a claim
    /// once in each limit, so the end of the stage would give back a permit that the procedure still needs.
    pub(crate) fn name_stage_limits(&mut self, limits: &[LimitKey]) {
        self.stage_limits.clear();
        for key in limits {
            if !self.limits.contains(key) && !self.stage_limits.contains(key) {
                self.stage_limits.push(key.clone());
            }
        }
    }

    /// Gives up the permits of the stage and returns their limits. The row still names them, because the next attempt
    /// needs the same.
    pub(crate) fn drop_stage_permits(&mut self) -> Vec<LimitKey> {
        if std::mem::take(&mut self.stage_permits) {
            self.stage_limits.to_vec()
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    //! No permit is counted twice, and none that the procedure holds for itself is given back with a stage's.

    use super::*;
    use crate::id::{Blob, Kind, ProcedureId, Timestamp};

    fn keys(names: &[&str]) -> Vec<LimitKey> {
        names.iter().map(|name| LimitKey::from(*name)).collect()
    }

    fn row() -> Row {
        let mut row = Row::new(ProcedureId::root(1), Kind::from("k"), 1, Blob::default(), Timestamp(0));
        row.limits = keys(&["k"]).into();
        row.name_stage_limits(&keys(&["cards", "k", "cards"]));
        row
    }

    #[test]
    fn a_stage_takes_no_second_permit_of_the_procedures_own_limit() {
        assert_eq!(row().stage_limits, keys(&["cards"]));
    }

    #[test]
    fn a_stages_permits_go_back_alone() {
        let mut row = row();
        assert_eq!(row.lacking_limits().cloned().collect::<Vec<_>>(), keys(&["k", "cards"]));
        row.holds = true;
        row.stage_permits = true;
        assert_eq!(row.held_limits(), keys(&["k", "cards"]));
        assert_eq!(row.drop_stage_permits(), keys(&["cards"]));
        assert_eq!(row.held_limits(), keys(&["k"]));
        assert_eq!(row.lacking_limits().cloned().collect::<Vec<_>>(), keys(&["cards"]));
        assert_eq!(row.drop_stage_permits(), []);
    }
}
