//! What to do about arguments that the parser refuses, where its own guess misleads: an option of another command of the
//! same verb, and options before the command that they are of.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// The options that say what a verb speaks to.
const DATA: &str = "data";
const URL: &str = "url";

/// Puts the right tip into an error of the parser. `arguments` are those of the process, its name included.
pub(super) fn explain(mut error: Error, mut program: Command, arguments: &[String]) -> Error {
    program.build();
    match (error.kind(), text(&error, ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(option)) => tell_owners(&mut error, &program, arguments, &option),
        (ErrorKind::ArgumentConflict, None) => tell_order(&mut error),
        _ => {}
    }
    error
}

/// Names the commands that have the option. The parser compares it with the options of one command alone.
fn tell_owners(error: &mut Error, program: &Command, arguments: &[String], option: &str) {
    let (verb, command) = commands_before(option, program, arguments);
    let Some(long) = option.strip_prefix("--") else { return };
    let has = |command: &&Command| {
        command
            .get_arguments()
            .any(|own| own.get_long() == Some(long) && !own.is_hide_set())
    };
    let Some(verb) = verb.filter(|_| !has(&command)) else {
        return;
    };
    if long == DATA && command.get_arguments().any(|own| own.get_long() == Some(URL)) {
        return tell_needs_engine(error, command);
    }
    let family = std::iter::once(verb).chain(verb.get_subcommands());
    let owners: Vec<&Command> = family.filter(has).collect();
    let Some(first) = owners.first() else { return };
    let usage = (*first).clone().render_usage();
    let tips = owners.iter().map(|owner| tip(owner, option)).collect();
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
}

/// Says that a verb does not look into closed journals.
fn tell_needs_engine(error: &mut Error, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let text = format!("'{name}' needs a running engine: give the address of its dashboard with '--{URL}'");
    error.remove(ContextKind::SuggestedArg);
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![StyledStr::from(text)]),
    );
}

fn tip(owner: &Command, option: &str) -> StyledStr {
    let name = owner.get_bin_name().unwrap_or_else(|| owner.get_name());
    StyledStr::from(format!("'{name}' has the option '{option}'"))
}

/// Returns the verb and the command that stand before an argument; the verb is `None` if there is only the program.
fn commands_before<'c>(
    argument: &str,
    program: &'c Command,
    arguments: &[String],
) -> (Option<&'c Command>, &'c Command) {
    let is_it = |said: &str| {
        said.strip_prefix(argument)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let before = arguments.iter().skip(1).take_while(|said| !is_it(said));
    before.fold((None, program), |(verb, command), said| {
        match command.find_subcommand(said) {
            Some(found) => (verb.or(Some(found)), found),
            None => (verb, command),
        }
    })
}

/// Says where the options stand, if they stand before the command that takes them.
fn tell_order(error: &mut Error) {
    if let Some(command) = text(error, ContextKind::InvalidSubcommand) {
        let tip = StyledStr::from(format!("write options behind '{command}'"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    }
}
