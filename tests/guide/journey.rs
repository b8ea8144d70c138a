//! One story from its first block to its last.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command as Process;

use crate::block::{Block, blocks};
use crate::console::{Command, Verb, commands};
use crate::output::{Kill, is_shown, run};
use crate::project::Project;
use crate::rest::is_at_rest;
use crate::root;
use crate::workspace::Built;

/// A command, and the project as it is at that line.
struct Act {
    command: Command,
    /// Place in the story's states.
    state: usize,
}

/// What a reader does, in order.
pub(crate) struct Journey {
    pub(crate) name: String,
    /// The project at each line at which it is run.
    pub(crate) states: Vec<Project>,
    acts: Vec<Act>,
}

impl Journey {
    /// Reads its pages.
    pub(crate) fn read(name: &str, pages: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut journey = Self {
            name: name.to_owned(),
            states: Vec::new(),
            acts: Vec::new(),
        };
        let mut project = Project::default();
        for page in pages {
            let text = fs::read_to_string(root().join(page))?;
            for block in blocks(page, &text)? {
                journey.take(&mut project, &block)?;
            }
        }
        let was_run = journey.states.last() == Some(&project);
        if project != Project::default() && !was_run {
            return Err(format!("{}: what it builds is never run as it is at its end", pages.join(", ")).into());
        }
        Ok(journey)
    }

    fn take(&mut self, project: &mut Project, block: &Block) -> Result<(), String> {
        match (block.language.as_str(), block.title.as_deref()) {
            (_, Some(file)) => project.take(block, file),
            ("rust", None) if !project.has(&block.text) => {
                Err(format!("{}: no file of the project has these lines", block.place()))
            }
            ("console", None) => commands(block)?.into_iter().try_for_each(|command| {
                let place = command.place.clone();
                self.act(project, command).map_err(|why| format!("{place}: {why}"))
            }),
            _ => Ok(()),
        }
    }

    fn act(&mut self, project: &mut Project, command: Command) -> Result<(), String> {
        match &command.verb {
            Verb::New(name) | Verb::Folder(name) => {
                *project = Project {
                    name: name.clone(),
                    ..Project::default()
                };
                return Ok(());
            }
            Verb::Enter(name) if *name == project.name => return Ok(()),
            Verb::Enter(name) => return Err(format!("there is no folder {name}")),
            Verb::Add(words) => return project.add(&words.iter().map(String::as_str).collect::<Vec<_>>()),
            Verb::Copy(from, to) => {
                let text = fs::read_to_string(root().join(from)).map_err(|error| format!("{from}: {error}"))?;
                project.files.insert(to.clone(), text);
                return Ok(());
            }
            Verb::Run(_) | Verb::Test(_) | Verb::Program(_) => {}
        }
        if project.name.is_empty() {
            return Err("there is no project: begin with `cargo new`, or with `mkdir`".to_owned());
        }
        if self.states.last() != Some(project) {
            self.states.push(project.clone());
        }
        self.acts.push(Act {
            command,
            state: self.states.len() - 1,
        });
        Ok(())
    }

    /// The packages whose programs it runs, or whose tests.
    pub(crate) fn packages(&self, are_tests: bool) -> BTreeSet<String> {
        let acts = self.acts.iter().filter(|act| match act.command.verb {
            Verb::Run(_) => !are_tests,
            Verb::Test(_) => are_tests,
            Verb::New(_) | Verb::Folder(_) | Verb::Enter(_) | Verb::Add(_) | Verb::Copy(..) | Verb::Program(_) => false,
        });
        acts.map(|act| self.package(act.state)).collect()
    }

    /// The name of the package of a state.
    pub(crate) fn package(&self, state: usize) -> String {
        format!("guide-{}-{state}", self.name)
    }

    /// Does what the story says, in a folder of its own.
    pub(crate) fn run(&self, built: &Built) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for act in &self.acts {
            let place = &act.command.place;
            self.perform(act, built, folder.path())
                .map_err(|why| format!("{place}: {why}"))?;
        }
        Ok(())
    }

    fn perform(&self, act: &Act, built: &Built, folder: &Path) -> Result<(), String> {
        let command = &act.command;
        let package = self.package(act.state);
        if let Some(project) = self.states.get(act.state) {
            project.lay_out(folder).map_err(|error| error.to_string())?;
        }
        let mut process = match &command.verb {
            Verb::Run(words) => {
                let mut process = Process::new(built.program(&package)?);
                process.args(words);
                process
            }
            Verb::Test(words) => {
                let mut process = Process::new(built.tests(&package)?);
                // In one order, so that a page can show it.
                process.arg("--test-threads=1").args(words);
                process
            }
            Verb::Program(words) => {
                let mut process = Process::new(env!("CARGO_BIN_EXE_procession"));
                process.args(words);
                process
            }
            Verb::New(_) | Verb::Folder(_) | Verb::Enter(_) | Verb::Add(_) | Verb::Copy(..) => return Ok(()),
        };
        process
            .current_dir(folder)
            .env_remove("PROCESSION_CASE")
            .env_remove("PROCESSION_URL");
        process.env_remove("RUST_BACKTRACE");
        let kill = Kill {
            printed: &command.printed,
            is_at_rest: &|| is_at_rest(folder),
        };
        let printed = run(&mut process, command.is_killed.then_some(&kill))?;
        let shown = command.printed.join("\n");
        if !command.printed.is_empty() && !is_shown(&command.printed, &printed.lines) {
            return Err(format!(
                "the page shows\n{shown}\nand it prints\n{}",
                printed.lines.join("\n")
            ));
        }
        if command.printed.is_empty() && !printed.succeeded {
            return Err(format!("it fails:\n{}", printed.lines.join("\n")));
        }
        Ok(())
    }
}
