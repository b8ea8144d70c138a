//! The engine that takes turns with the plain one: one on which many more procedures wait, or with a dashboard that many
//! look at or search, or one whose stages are pure.

use std::path::Path;

use super::searched::{Searchers, Searches};
use super::watched::Site;
use super::{BenchError, ChainArgs, Runner, STOP_TIME, Shape, beside};
use crate::bench::taken::Taken;

pub(super) struct Other {
    /// None if the plain engine is compared with nothing.
    engine: Option<Engine>,
    searches: Searches,
}

struct Engine {
    runner: Runner,
    /// Its dashboard, if it has one.
    site: Option<Site>,
    viewers: u32,
    searchers: u32,
    /// Its stages are pure.
    speculates: bool,
}

impl Other {
    pub(super) async fn start(args: &ChainArgs, shape: &Shape, directory: &Path) -> Result<Self, BenchError> {
        let (live, lookers) = (args.live, args.viewers + args.searchers);
        let engine = match (live, lookers) {
            (0, 0) if args.speculate => Some(Engine::speculating(&directory.join("speculating"), shape).await?),
            (0, 0) => None,
            (_, 0) => Some(Engine::crowded(&directory.join("crowded"), shape, live).await?),
            (_, _) => Some(Engine::watched(&directory.join("watched"), shape, args).await?),
        };
        Ok(Self {
            engine,
            searches: Searches::default(),
        })
    }

    /// Runs a round, if there is such an engine.
    pub(super) async fn round(&mut self, shape: &Shape) -> Result<Option<Taken>, BenchError> {
        let Some(engine) = &self.engine else { return Ok(None) };
        let viewers = engine.site.as_ref().map(|site| site.viewers(engine.viewers));
        let searchers = engine.site.as_ref();
        let searchers = searchers.map(|site| Searchers::begin(site.address(), engine.searchers));
        let shape = Shape {
            is_pure: engine.speculates,
            ..shape.clone()
        };
        let round = engine.runner.round(&shape).await;
        if let Some(viewers) = viewers {
            viewers.end()?;
        }
        if let Some(searchers) = searchers {
            self.searches += searchers.end()?;
        }
        Ok(Some(round?.0))
    }

    /// Ends it; gives what searchers were told in all rounds.
    pub(super) async fn close(self) -> Result<Searches, BenchError> {
        if let Some(engine) = self.engine {
            if let Some(site) = engine.site {
                site.close().await;
            }
            engine.runner.executor.drain(STOP_TIME).await?;
        }
        Ok(self.searches)
    }
}

impl Engine {
    /// An engine on which so many wait.
    async fn crowded(directory: &Path, shape: &Shape, live: u32) -> Result<Self, BenchError> {
        let runner = Runner::start(directory, shape).await?;
        beside::park(&runner.executor, live, &shape.payload).await?;
        runner.round(&shape.warm_up()).await?;
        Ok(Self {
            runner,
            site: None,
            viewers: 0,
            searchers: 0,
            speculates: false,
        })
    }

    /// An engine that runs pure stages.
    async fn speculating(directory: &Path, shape: &Shape) -> Result<Self, BenchError> {
        let runner = Runner::start(directory, shape).await?;
        let warm_up = Shape {
            is_pure: true,
            ..shape.warm_up()
        };
        runner.round(&warm_up).await?;
        Ok(Self {
            runner,
            site: None,
            viewers: 0,
            searchers: 0,
            speculates: true,
        })
    }

    /// An engine with a dashboard.
    async fn watched(directory: &Path, shape: &Shape, args: &ChainArgs) -> Result<Self, BenchError> {
        let runner = Runner::start(directory, shape).await?;
        let site = Site::open(&runner.executor).await?;
        runner.round(&shape.warm_up()).await?;
        Ok(Self {
            runner,
            site: Some(site),
            viewers: args.viewers,
            searchers: args.searchers,
            speculates: false,
        })
    }
}
