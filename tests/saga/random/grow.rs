//! Draws definitions from a seed. States are grown from the end: what follows one is there before it.

use super::draw::Draw;
use super::shape::{Condition, Drawn, Each, Graph, Kind, LONGEST, Retry, State, Task, Undo, Work};

/// Machines of one saga at most.
const MACHINES: usize = 4;
/// Variables that tasks write.
pub(super) const VARIABLES: [&str; 3] = ["x", "y", "z"];
/// Classes of faults, each with those that catch it.
const CLASSES: [&str; 3] = ["x.Boom", "x.Bang", "java.lang.Throwable"];

pub(super) fn grow(draw: &mut Draw) -> Drawn {
    let mut growth = Growth {
        drawn: Drawn::default(),
        numbers: 0,
        budget: 5 + draw.place(16),
        only_small: false,
    };
    growth.machine(draw, 4);
    growth.drawn
}

struct Growth {
    drawn: Drawn,
    numbers: usize,
    /// States that may still be grown.
    budget: usize,
    /// A machine that a Loop runs has no Forks: then a member is known by its state and its element.
    only_small: bool,
}

/// The machine in hand, and where its escapes are.
struct Ground {
    machine: usize,
    fail: Option<usize>,
    trigger: Option<usize>,
}

impl Growth {
    fn machine(&mut self, draw: &mut Draw, depth: usize) -> usize {
        let machine = self.drawn.machines.len();
        self.drawn.machines.push(Graph {
            name: format!("m{machine}"),
            ..Graph::default()
        });
        let mut ground = Ground {
            machine,
            fail: None,
            trigger: None,
        };
        if draw.percent(60) {
            ground.fail = Some(self.push(machine, "N", Kind::Fail, None));
        }
        if draw.percent(85) {
            let next = ground.fail.filter(|_| draw.percent(50));
            ground.trigger = Some(self.push(machine, "X", Kind::Trigger, next));
        }
        let end = match draw.percent(50) {
            true => Some(self.push(machine, "Y", Kind::Succeed, None)),
            false => None,
        };
        let length = 1 + draw.place(4);
        let start = self.row(draw, &ground, depth, length, end);
        let start = match start {
            Some(start) => start,
            None => self.task(draw, &ground, None),
        };
        self.drawn.machines[machine].start = start;
        machine
    }

    fn push(&mut self, machine: usize, letter: &str, kind: Kind, next: Option<usize>) -> usize {
        self.numbers += 1;
        let states = &mut self.drawn.machines[machine].states;
        let name = format!("{letter}{}", self.numbers);
        states.push(State { name, kind, next });
        states.len() - 1
    }

    /// Grows so many states one after another, and returns the first.
    fn row(
        &mut self,
        draw: &mut Draw,
        ground: &Ground,
        depth: usize,
        length: usize,
        end: Option<usize>,
    ) -> Option<usize> {
        let mut next = end;
        for _ in 0..length {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            next = Some(self.any(draw, ground, depth, next));
        }
        next
    }

    fn any(&mut self, draw: &mut Draw, ground: &Ground, depth: usize, next: Option<usize>) -> usize {
        match draw.below(100) {
            0..50 => self.task(draw, ground, next),
            50..58 => self.script(draw, ground, next),
            58..66 if depth > 0 => self.choice(draw, ground, depth, next),
            66..70 if depth > 0 => self.circle(draw, ground, depth, next),
            70..76 => self.repeated(draw, ground, next),
            76..84 if depth > 0 && self.drawn.machines.len() < MACHINES => self.sub(draw, ground, depth, next),
            84..100 if depth > 0 && !self.only_small => self.fork(draw, ground, depth, next),
            _ => self.task(draw, ground, next),
        }
    }

    fn service(&self, draw: &mut Draw, ground: &Ground, next: Option<usize>) -> Task {
        let undo = match draw.below(100) {
            0..70 => Undo::Task,
            70..74 => Undo::Lacking,
            _ => Undo::None,
        };
        let class = |draw: &mut Draw| CLASSES[draw.place(CLASSES.len())];
        Task {
            work: Work::Service,
            undo,
            on_fault: draw.percent(30).then(|| ["FA", "UN", "SU"][draw.place(3)]),
            retry: draw.percent(25).then(|| Retry {
                class: draw.percent(70).then(|| class(draw)),
                most: 1 + draw.place(2),
                interval_ms: [0, 7, 20][draw.place(3)],
            }),
            catch: self.escape(draw, ground, next).map(|to| (class(draw), to)),
            output: draw.percent(60).then(|| VARIABLES[draw.place(VARIABLES.len())]),
            each: None,
        }
    }

    /// Returns where a fault may lead to.
    fn escape(&self, draw: &mut Draw, ground: &Ground, next: Option<usize>) -> Option<usize> {
        match draw.below(100) {
            0..60 => ground.trigger,
            60..68 => ground.fail,
            68..74 => next,
            _ => None,
        }
    }

    fn task(&mut self, draw: &mut Draw, ground: &Ground, next: Option<usize>) -> usize {
        let mut task = self.service(draw, ground, next);
        if draw.percent(8) {
            task.work = Work::Async;
            // What undoes it has no token that the log of its calls knows.
            (task.retry, task.catch, task.undo) = (None, None, Undo::None);
        }
        self.push(ground.machine, "T", Kind::Task(task), next)
    }

    fn script(&mut self, draw: &mut Draw, ground: &Ground, next: Option<usize>) -> usize {
        let task = Task {
            work: Work::Script {
                fails: draw.percent(25),
            },
            undo: Undo::None,
            on_fault: None,
            retry: None,
            ..self.service(draw, ground, next)
        };
        self.push(ground.machine, "S", Kind::Task(task), next)
    }

    fn choice(&mut self, draw: &mut Draw, ground: &Ground, depth: usize, next: Option<usize>) -> usize {
        let condition = match draw.percent(50) {
            true => Condition::Param(draw.below(3)),
            false => Condition::IsNull(VARIABLES[draw.place(2)]),
        };
        let (length, other) = (draw.place(2), 1 + draw.place(2));
        let default = match (draw.below(100), ground.fail, ground.trigger) {
            (0..6, Some(fail), _) => Some(fail),
            (6..12, _, Some(trigger)) => Some(trigger),
            // Nothing matches then.
            (12..16, ..) => None,
            _ => self.row(draw, ground, depth - 1, length, next),
        };
        let to = self.row(draw, ground, depth - 1, other, next);
        let to = match to {
            Some(to) => to,
            None => self.task(draw, ground, next),
        };
        let default = default.or_else(|| (next.is_none() && draw.percent(90)).then_some(to));
        self.push(ground.machine, "C", Kind::Choice(condition, to), default)
    }

    /// A circle of two rounds.
    fn circle(&mut self, draw: &mut Draw, ground: &Ground, depth: usize, next: Option<usize>) -> usize {
        let end = match next {
            Some(next) => next,
            None => self.push(ground.machine, "Y", Kind::Succeed, None),
        };
        let again = self.push(ground.machine, "A", Kind::Choice(Condition::Param(0), end), Some(end));
        let length = 1 + draw.place(2);
        let body = self.row(draw, ground, depth - 1, length, Some(again));
        let counter = Task {
            work: Work::Counter,
            undo: Undo::None,
            on_fault: None,
            retry: None,
            catch: None,
            output: None,
            each: None,
        };
        let start = self.push(ground.machine, "R", Kind::Task(counter), body);
        let name = self.drawn.machines[ground.machine].states[start].name.clone();
        self.drawn.machines[ground.machine].states[again].kind = Kind::Choice(Condition::FirstRound(name), start);
        start
    }

    fn each(draw: &mut Draw) -> Each {
        Each {
            elements: draw.place(LONGEST + 1),
            parallel: draw.place(3),
            half: draw.percent(20),
        }
    }

    fn repeated(&mut self, draw: &mut Draw, ground: &Ground, next: Option<usize>) -> usize {
        let task = Task {
            each: Some(Self::each(draw)),
            ..self.service(draw, ground, next)
        };
        self.push(ground.machine, "L", Kind::Task(task), next)
    }

    fn sub(&mut self, draw: &mut Draw, ground: &Ground, depth: usize, next: Option<usize>) -> usize {
        let each = (!self.only_small && draw.percent(30)).then(|| Self::each(draw));
        let was = self.only_small;
        self.only_small |= each.is_some();
        let machine = self.machine(draw, depth - 1);
        self.only_small = was;
        let task = Task {
            work: Work::Machine(machine),
            undo: if draw.percent(25) { Undo::Task } else { Undo::None },
            on_fault: None,
            retry: None,
            catch: None,
            each,
            ..self.service(draw, ground, next)
        };
        self.push(ground.machine, "M", Kind::Task(task), next)
    }

    fn fork(&mut self, draw: &mut Draw, ground: &Ground, depth: usize, next: Option<usize>) -> usize {
        let join = self.push(ground.machine, "J", Kind::Join, next);
        let count = 1 + draw.place(3);
        let mut branches = Vec::new();
        for _ in 0..count {
            let length = 1 + draw.place(2);
            let head = self.row(draw, ground, depth - 1, length, Some(join));
            branches.extend(head.filter(|head| *head != join));
        }
        if branches.is_empty() || draw.percent(8) {
            let place = draw.place(branches.len() + 1);
            branches.insert(place, join);
        }
        let fork = Kind::Fork {
            branches,
            join,
            parallel: draw.place(3),
            timeout_ms: if draw.percent(30) { 5 + draw.below(40) } else { 0 },
        };
        self.push(ground.machine, "F", fork, None)
    }
}
