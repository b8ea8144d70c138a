//! Draws up the list of operations from a seed.

use std::collections::BTreeMap;

use super::model::{Expected, ExpectedTable};
use super::operation::{Action, Operation};
use super::points::{self, Point};
use super::{Group, Lane};
use crate::demo::draw::Draw;
use crate::demo::faults::Lot;
use crate::demo::input::{Input, Share};
use crate::demo::meta::{QuotaRow, TableState};
use crate::demo::procedures::{
    CreateTable, DeleteTable, DisableTable, EnableTable, LoadTablet, MergeTablet, MoveTablet, SetQuota, SplitTablet,
    Target, UnloadTablet, UpdateAuth, UpdateTable,
};
use crate::demo::rows;
use procession::Procedure;

/// How many tablets a table is created with.
const TABLETS: usize = 8;
/// A table with this many tablets is not split further: 64 of them at eight
/// tables are as many as the load limit admits at once, and more show nothing new.
const TABLETS_MAX: u32 = 24;
/// A table with this few tablets is not merged further.
const TABLETS_MIN: u32 = 4;
/// How many operations of one table run at once.
const GROUP_MAX: usize = 8;
/// How many users there are.
const USERS: usize = 12;

/// How large a workload is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// The seed.
    pub seed: u64,
    /// How many tables there are.
    pub tables: u32,
    /// How many operations follow the creation of the tables.
    pub operations: u64,
    /// The share of operations that meet a fault.
    pub fail_rate: f64,
    /// How many servers there are.
    pub servers: u32,
}

/// A workload, and the world it must end in.
#[derive(Debug)]
pub struct Plan {
    /// Independent sequences of operations.
    pub lanes: Vec<Lane>,
    /// What must be there at the end.
    pub expected: Expected,
    /// How many operations there are.
    pub operations: u64,
}

/// A table while the list is drawn up.
struct Table {
    name: String,
    share: Share,
    keys: Vec<String>,
    /// How many tablets its rows make when it is created.
    born_with: u32,
    lane: Lane,
    now: Option<ExpectedTable>,
    tablets: u32,
    unloaded: Option<String>,
}

impl Table {
    fn is_enabled(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.state == TableState::Enabled)
    }
}

struct Generator {
    sizes: Sizes,
    draw: Draw,
    next: u64,
    users: BTreeMap<String, String>,
}

/// Draws up a workload on these rows.
#[must_use]
pub fn generate(sizes: &Sizes, input: &Input) -> Plan {
    let draw = Draw::of(sizes.seed, u64::MAX);
    let mut generator = Generator {
        sizes: *sizes,
        draw,
        next: 0,
        users: BTreeMap::new(),
    };
    let width = sizes.tables.saturating_sub(1).to_string().len().max(2);
    let mut tables: Vec<Table> = (0..sizes.tables)
        .map(|index| {
            let share = Share {
                index,
                of: sizes.tables,
            };
            let lines = input.share(share);
            Table {
                name: format!("t{index:0width$}"),
                share,
                keys: lines.iter().map(|line| rows::key_of(line).to_owned()).collect(),
                born_with: u32::try_from(rows::divide(&lines, TABLETS, "", None).len()).unwrap_or(u32::MAX),
                lane: Lane::default(),
                now: None,
                tablets: 0,
                unloaded: None,
            }
        })
        .collect();
    for table in &mut tables {
        generator.create(table);
    }
    let mut users = Lane::default();
    for _ in 0..sizes.operations {
        let place = generator.draw.below(tables.len());
        match tables.get_mut(place) {
            Some(table) if !generator.draw.chance(0.05) => generator.on_table(table),
            Some(_) | None => generator.on_user(&mut users),
        }
    }
    let mut lanes = vec![users];
    let mut expected = Expected {
        tables: BTreeMap::new(),
        users: generator.users,
    };
    for table in tables {
        lanes.push(table.lane);
        expected.tables.extend(table.now.map(|now| (table.name, now)));
    }
    Plan {
        lanes,
        expected,
        operations: generator.next,
    }
}

impl Generator {
    /// Draws the fate of the next operation; tells whether it will succeed.
    fn lot(&self, points: &[Point]) -> (Lot, bool) {
        let lot = Lot::draw(self.sizes.seed, self.next, self.sizes.fail_rate, points);
        let succeeds = lot.fault.is_none();
        (lot, succeeds)
    }

    /// Appends an operation that nothing else of the lane may overlap.
    fn alone(&mut self, lane: &mut Lane, action: impl Into<Action>) {
        let operation = Operation {
            number: self.next,
            action: action.into(),
        };
        lane.groups.push(Group {
            operations: vec![operation],
            open: false,
        });
        self.next += 1;
    }

    /// Appends an operation that may run beside others that leave the rows as they are.
    fn beside(&mut self, lane: &mut Lane, action: impl Into<Action>) {
        let operation = Operation {
            number: self.next,
            action: action.into(),
        };
        match lane.groups.last_mut() {
            Some(group) if group.open && group.operations.len() < GROUP_MAX => group.operations.push(operation),
            Some(_) | None => lane.groups.push(Group {
                operations: vec![operation],
                open: true,
            }),
        }
        self.next += 1;
    }

    fn key(&mut self, table: &Table) -> String {
        self.draw.one(&table.keys).cloned().unwrap_or_default()
    }

    fn on_user(&mut self, lane: &mut Lane) {
        let user = format!("user{:02}", self.draw.below(USERS));
        let (lot, succeeds) = self.lot(&points::auth());
        let role = if self.users.contains_key(&user) && self.draw.chance(0.25) {
            None
        } else {
            self.draw.one(&["reader", "writer", "owner"]).copied()
        };
        self.alone(lane, UpdateAuth::new(lot, &user, role));
        match role {
            Some(role) if succeeds => self.users.insert(user, role.to_owned()),
            None if succeeds => self.users.remove(&user),
            Some(_) | None => None,
        };
    }

    fn on_table(&mut self, table: &mut Table) {
        let drawn = self.draw.below(100);
        let state = table.now.as_ref().map(|now| now.state);
        if let Some(key) = table.unloaded.clone() {
            return self.load(table, &key);
        }
        match (state, drawn) {
            (None, _) => self.create(table),
            (Some(TableState::Enabled), 0..30) => self.relocate(table),
            (Some(TableState::Enabled), 30..50) if table.tablets < TABLETS_MAX => self.split(table),
            (Some(TableState::Enabled), 30..70) if table.tablets > TABLETS_MIN => self.merge(table),
            (Some(TableState::Enabled), 30..70) => self.split(table),
            (Some(TableState::Enabled), 70..76) => self.unload(table),
            (Some(TableState::Enabled), 76..83) => self.disable(table),
            (Some(TableState::Disabled), 0..70) => self.enable(table),
            (Some(_), 70..88) => self.update(table),
            (Some(_), 96..100) => self.delete(table),
            (Some(_), _) => self.quota(table),
        }
    }

    fn create(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::create());
        self.alone(
            &mut table.lane,
            CreateTable::new(lot, &table.name, table.share, table.born_with),
        );
        if succeeds {
            table.now = Some(ExpectedTable::new(table.share));
            table.tablets = table.born_with;
        }
    }

    fn delete(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::unload_all(DeleteTable::KIND, table.is_enabled()));
        self.alone(&mut table.lane, DeleteTable::new(lot, &table.name));
        if succeeds {
            table.now = None;
        }
    }

    fn disable(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::unload_all(DisableTable::KIND, table.is_enabled()));
        self.alone(&mut table.lane, DisableTable::new(lot, &table.name));
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.state = TableState::Disabled;
        }
    }

    fn enable(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::enable());
        self.alone(&mut table.lane, EnableTable::new(lot, &table.name));
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.state = TableState::Enabled;
        }
    }

    fn update(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::update(table.is_enabled()));
        let property = self
            .draw
            .one(&["compression", "replicas", "comment"])
            .copied()
            .unwrap_or("comment");
        let value = self.draw.below(1000).to_string();
        self.alone(&mut table.lane, UpdateTable::new(lot, &table.name, property, &value));
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.schema += 1;
            now.properties.insert(property.to_owned(), value);
        }
    }

    fn quota(&mut self, table: &mut Table) {
        let (lot, succeeds) = self.lot(&points::quota());
        let mut amount = || u32::try_from(self.draw.below(10_000)).unwrap_or(0);
        let quota = QuotaRow {
            reads: amount(),
            writes: amount(),
        };
        self.alone(&mut table.lane, SetQuota::new(lot, &table.name, quota));
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.quota = Some(quota);
        }
    }

    fn unload(&mut self, table: &mut Table) {
        let key = self.key(table);
        let (lot, succeeds) = self.lot(&points::sought(UnloadTablet::KIND));
        self.alone(
            &mut table.lane,
            UnloadTablet::new(lot, &table.name, Target::Holding(key.clone())),
        );
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.offline = 1;
            table.unloaded = Some(key);
        }
    }

    fn load(&mut self, table: &mut Table, key: &str) {
        let (lot, succeeds) = self.lot(&points::sought(LoadTablet::KIND));
        self.alone(
            &mut table.lane,
            LoadTablet::new(lot, &table.name, Target::Holding(key.to_owned())),
        );
        if let Some(now) = table.now.as_mut().filter(|_| succeeds) {
            now.offline = 0;
            table.unloaded = None;
        }
    }

    /// Moves a tablet; where there is one server only, sets the quota instead.
    fn relocate(&mut self, table: &mut Table) {
        if self.sizes.servers < 2 {
            return self.quota(table);
        }
        let key = self.key(table);
        let (lot, _) = self.lot(&points::sought(MoveTablet::KIND));
        self.beside(
            &mut table.lane,
            MoveTablet::new(lot, &table.name, Target::Holding(key), None),
        );
    }

    fn split(&mut self, table: &mut Table) {
        let key = self.key(table);
        let (lot, succeeds) = self.lot(&points::sought(SplitTablet::KIND));
        self.beside(
            &mut table.lane,
            SplitTablet::new(lot, &table.name, Target::Holding(key)),
        );
        table.tablets += u32::from(succeeds);
    }

    fn merge(&mut self, table: &mut Table) {
        let key = self.key(table);
        let (lot, succeeds) = self.lot(&points::sought(MergeTablet::KIND));
        self.beside(
            &mut table.lane,
            MergeTablet::new(lot, &table.name, Target::Holding(key)),
        );
        table.tablets -= u32::from(succeeds);
    }
}
