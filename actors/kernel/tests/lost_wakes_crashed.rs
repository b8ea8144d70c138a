//! Lost wakes and crashes together: a wake is lost once, in memory alone or on the disk as well, and the
//! process dies before or after any commit. The family comes to its end, and no health check finds more than was lost.

use procession_kernel::{
    Admission, Birth, Blob, ClaimId, Commit, Epoch, Event, JoinPolicy, Kernel, Kind, KindRules, Lacking, LockNeed,
    NextStageNeeds, ProcedureId, Record, RequestId, Row, Rules, StageEnded, StageOutcome, Timestamp, WaitReason,
};

const ROOT: ProcedureId = ProcedureId::new(1, 0);
const CHILD: ProcedureId = ProcedureId::new(1, 1);
const DUE: Timestamp = Timestamp(6_000_000);

/// What gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    /// The end of a child: the parent's row of that commit.
    Child,
    /// A timer that is not armed.
    Timer,
    /// The grant of a lock, which nobody hears of.
    Lock,
}

/// The process dies.
struct Died;

/// What outlives a crash, and one life's kernel.
struct Life {
    kernel: Kernel,
    wake: Wake,
    disk: Vec<Record>,
    epoch: u64,
    now: Timestamp,
    commits: usize,
    /// The commit at which it dies, and whether that commit is kept.
    dies: Option<(usize, bool)>,
    is_lost: bool,
    found: u64,
    /// The disk loses the wake, too.
    on_disk: bool,
}

fn rules() -> Rules {
    Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    }
}

fn birth(wake: Wake) -> Birth {
    let birth = Birth::new(Kind::from("k"), 1, Blob::from(&b"1"[..]), Blob::from(&b"value"[..]));
    if wake != Wake::Lock {
        return birth;
    }
    Birth {
        next_needs: NextStageNeeds {
            locks: vec![LockNeed::exclusive("t")],
            ..NextStageNeeds::default()
        },
        admission: Admission {
            limits: Vec::new(),
            asked: Some(ClaimId(7)),
            lacking: Some(Lacking::Lock("t".into())),
        },
        ..birth
    }
}

impl Life {
    fn new(wake: Wake, on_disk: bool, dies: Option<(usize, bool)>) -> Self {
        Self {
            kernel: Kernel::new(rules(), Epoch(1), 0),
            wake,
            disk: Vec::new(),
            epoch: 1,
            now: Timestamp(1_000_000),
            commits: 0,
            dies,
            is_lost: false,
            found: 0,
            on_disk,
        }
    }

    /// Decides; what has records for the disk is a commit, at which it may die.
    fn feed(&mut self, event: Event) -> Result<(), Died> {
        let decision = self.kernel.decide(self.now, event);
        if decision.is_commit() {
            let dies = self.dies.take_if(|(at, _)| *at == self.commits);
            self.commits += 1;
            if dies.is_none_or(|(_, kept)| kept) {
                self.disk.extend(decision.durable().cloned());
            }
            if dies.is_some() {
                return Err(Died);
            }
        }
        self.kernel.apply(decision, &mut Commit::new());
        assert_eq!(self.kernel.validate(), Ok(()));
        Ok(())
    }

    /// The next life reads the disk.
    fn start(&mut self) -> Result<(), Died> {
        self.found += self.kernel.found();
        self.epoch += 1;
        self.kernel = Kernel::new(rules(), Epoch(self.epoch), 1);
        for record in &self.disk {
            self.kernel.evolve(record);
        }
        self.feed(Event::Recovered)
    }

    fn row(&self, id: ProcedureId) -> Option<Row> {
        self.kernel.row(id).cloned()
    }

    /// Puts a row back as it was before its wake.
    fn lose(&mut self, before: Row) {
        self.is_lost = true;
        let record = Record::Row(Box::new(before));
        self.kernel.evolve(&record);
        if self.on_disk {
            self.disk.push(record);
        }
    }

    fn report(&mut self, id: ProcedureId, outcome: StageOutcome) -> Result<(), Died> {
        let Some(run) = self
            .row(id)
            .and_then(|row| row.in_flight)
            .map(|in_flight| in_flight.run)
        else {
            return Ok(());
        };
        let report = StageEnded::new(id, run, self.kernel.epoch(), self.now, outcome);
        self.feed(Event::StageEnded(Box::new(report)))
    }

    /// What the body of the root's stage says.
    fn outcome(&self, root: &Row) -> StageOutcome {
        let then = Blob::from(&b"2"[..]);
        match self.wake {
            Wake::Child if root.stage.as_slice() == b"1" => StageOutcome::Spawn {
                births: vec![birth(self.wake)],
                join: JoinPolicy::AllSucceeded,
                width: 0,
                then,
            },
            Wake::Timer if root.stage.as_slice() == b"1" => StageOutcome::Sleep(DUE, then),
            Wake::Child | Wake::Timer | Wake::Lock => StageOutcome::Done(Blob::default()),
        }
    }

    /// One step: whatever can be done; gives false when nothing is left.
    fn step(&mut self) -> Result<bool, Died> {
        let Some(root) = self.row(ROOT) else {
            return Ok(false);
        };
        if root.in_flight.is_some() {
            self.report(ROOT, self.outcome(&root))?;
            return Ok(true);
        }
        if self.row(CHILD).is_some_and(|child| child.in_flight.is_some()) {
            self.report(CHILD, StageOutcome::Done(Blob::default()))?;
            if !self.is_lost {
                self.lose(root);
            }
            return Ok(true);
        }
        match root.wait {
            Some(WaitReason::Timer(_)) if !self.is_lost => {
                self.is_lost = true;
                self.kernel.evolve(&Record::Disarmed(ROOT));
                self.check(false)?;
            }
            Some(WaitReason::Timer(_)) if self.kernel.next_deadline().is_some() => {
                self.now = DUE;
                self.feed(Event::TimerDue(ROOT))?;
            }
            // The limiter has granted it: the first word is lost; a start asks again, and hears it.
            Some(WaitReason::Lock(_)) if self.is_lost && self.kernel.epoch() > Epoch(1) => {
                self.feed(Event::Granted(ROOT))?;
            }
            Some(WaitReason::Lock(_)) => {
                self.is_lost = true;
                self.check(true)?;
            }
            _ => self.check(false)?,
        }
        Ok(true)
    }

    fn check(&mut self, is_granted: bool) -> Result<(), Died> {
        self.feed(Event::HealthCheckDue {
            granted: is_granted.then_some(ROOT).into_iter().collect(),
            unknown: Vec::new(),
        })
    }

    /// Lives to the end, through the crash. Returns the commits.
    fn play(mut self) -> usize {
        let submitted = Event::Submitted(RequestId(1), vec![birth(self.wake).into()]);
        // A client whose submission is not on the disk sends it again.
        for _ in 0..100 {
            let is_there = self.disk.iter().any(|record| matches!(record, Record::Row(_)));
            let step = if is_there {
                self.step()
            } else {
                self.feed(submitted.clone()).map(|()| true)
            };
            match step {
                Ok(true) => {}
                Ok(false) => break,
                Err(Died) => assert!(self.start().is_ok(), "it dies once"),
            }
        }
        assert!(self.kernel.families().is_empty(), "it comes to its end");
        self.found += self.kernel.found();
        // A crash right behind the commit that wakes it takes only what was in memory.
        assert!(self.is_lost || self.epoch > 1);
        assert!(self.found <= 1, "found {}", self.found);
        let all = self.found;
        assert!(self.check(false).is_ok() && self.kernel.found() <= all, "and no more");
        if self.epoch == 1 {
            assert_eq!(self.found, 1, "without a crash the health check finds it");
        }
        self.commits
    }
}

fn crashed_everywhere(wake: Wake, on_disk: bool) {
    let commits = Life::new(wake, on_disk, None).play();
    assert!(commits > 2, "{wake:?}: {commits}");
    for commit in 0..commits {
        for kept in [false, true] {
            Life::new(wake, on_disk, Some((commit, kept))).play();
        }
    }
}

#[test]
fn e_108_the_end_of_a_child_is_found_or_read_from_the_disk() {
    crashed_everywhere(Wake::Child, false);
}

#[test]
fn e_108_the_end_of_a_child_that_the_disk_has_lost_too_is_found() {
    crashed_everywhere(Wake::Child, true);
}

#[test]
fn e_108_a_timer_is_found_or_armed_by_the_start() {
    crashed_everywhere(Wake::Timer, false);
}

#[test]
fn e_108_a_grant_is_found_or_asked_for_by_the_start() {
    crashed_everywhere(Wake::Lock, false);
}
