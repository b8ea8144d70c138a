//! Who speaks to a dashboard: a token that stands on no command line, and profiles of a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;

use super::exit::Failure;

/// Where a token is, unless a file is named.
const TOKEN: &str = "PROCESSION_TOKEN";
/// Where the name of a profile is, unless it is given.
const PROFILE: &str = "PROCESSION_PROFILE";
/// Where the file of profiles is, if not in the user's directory for settings.
const CONFIG: &str = "PROCESSION_CONFIG";

/// A login, and where it is written.
#[derive(Debug, Clone, Args)]
pub(super) struct Login {
    /// A file with a token, which is sent as 'Authorization: Bearer …' [default: what PROCESSION_TOKEN says].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The profile with address and token, of ~/.config/procession/config.toml or the file that PROCESSION_CONFIG names
    /// [default: what PROCESSION_PROFILE says].
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// An address and its login, under a name.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Profile {
    /// The address of a dashboard.
    pub(super) url: Option<String>,
    /// A file with a token; a relative path begins at the directory of the file that names it.
    token_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

impl Profile {
    /// Returns `true` if its token may be sent to this address: it is that of the profile, or the profile has none.
    fn is_for(&self, url: &str) -> bool {
        self.url.as_deref().is_none_or(|own| own == url)
    }
}

impl Login {
    /// Returns the profile that is asked for; an empty one if none is.
    pub(super) fn profile(&self) -> Result<Profile, Failure> {
        let named = self.profile.clone().or_else(|| said(PROFILE));
        let Some(name) = named else {
            return Ok(Profile::default());
        };
        let file = config_file()?;
        let text = fs::read_to_string(&file).map_err(|error| unread(&file, &error))?;
        profile_of(&name, &text, &file)
    }

    /// Returns the header that carries the token for this address, if there is one: of the file that is named, of the
    /// profile that is named, of the environment, else of the environment's profile. A profile's token goes to the address
    /// of that profile alone.
    pub(super) fn authorization(&self, profile: &Profile, url: &str) -> Result<Option<String>, Failure> {
        let of_profile = profile.token_file.as_ref().filter(|_| profile.is_for(url));
        let token = match (&self.token_file, said(TOKEN), of_profile) {
            (Some(file), _, _) => Some(token_of(file)?),
            (None, Some(_), Some(file)) if self.profile.is_some() => Some(token_of(file)?),
            (None, Some(token), _) => Some(token),
            (None, None, Some(file)) => Some(token_of(file)?),
            (None, None, None) => None,
        };
        Ok(token.map(|token| format!("Authorization: Bearer {token}")))
    }
}

fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns where the file of profiles is, by the rules of freedesktop.org.
fn config_file() -> Result<PathBuf, Failure> {
    if let Some(file) = said(CONFIG) {
        return Ok(PathBuf::from(file));
    }
    let directory = match said("XDG_CONFIG_HOME") {
        Some(directory) => Some(PathBuf::from(directory)),
        None => std::env::home_dir().map(|home| home.join(".config")),
    };
    let directory = directory.ok_or_else(|| {
        Failure::usage(format!(
            "this user has no home directory; name the file of profiles with {CONFIG}"
        ))
    })?;
    Ok(directory.join("procession").join("config.toml"))
}

fn profile_of(name: &str, text: &str, file: &Path) -> Result<Profile, Failure> {
    let config: Config = toml::from_str(text)
        .map_err(|error| Failure::usage(format!("{} is no file of profiles: {error}", file.display())))?;
    let mut profiles = config.profiles;
    let Some(mut profile) = profiles.remove(name) else {
        let names: Vec<String> = profiles.into_keys().collect();
        return Err(Failure::usage(format!(
            "{} has no profile \"{name}\"; it has {}",
            file.display(),
            super::print::named(names)
        )));
    };
    if let (Some(token), Some(directory)) = (&mut profile.token_file, file.parent()) {
        *token = directory.join(&*token);
    }
    Ok(profile)
}

fn token_of(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file).map_err(|error| unread(file, &error))?;
    match text.trim() {
        "" => Err(Failure::usage(format!("{} holds no token", file.display()))),
        token => Ok(token.to_owned()),
    }
}

fn unread(file: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_its_name() -> Result<(), Failure> {
        let file = Path::new("/etc/procession/config.toml");
        let text = "[profiles.live]\nurl = 'http://here/ops'\ntoken-file = 'live.token'\n";
        let live = profile_of("live", text, file)?;
        assert_eq!(live.url.as_deref(), Some("http://here/ops"));
        assert_eq!(
            live.token_file.as_deref(),
            Some(Path::new("/etc/procession/live.token"))
        );
        let refused = |name, text| profile_of(name, text, file).unwrap_err().text;
        assert!(refused("test", text).contains("it has live"));
        assert!(refused("live", "[profiles.live]\npassword = 'x'\n").contains("unknown field"));
        Ok(())
    }
}
