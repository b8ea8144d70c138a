//! Who runs the program.

/// Returns the name of the user: what the environment says, else the account of the process. Without a login, as under
/// cron or in a container, the environment says nothing.
pub(super) fn user() -> Option<String> {
    let names = ["USER", "LOGNAME", "USERNAME"].into_iter();
    let named = names.filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|name| !name.trim().is_empty()).or_else(account)
}

/// Returns the account of the process, or its number if it has no name.
#[cfg(unix)]
fn account() -> Option<String> {
    let name = uzers::get_current_username().map(|name| name.to_string_lossy().into_owned());
    name.or_else(|| Some(format!("uid {}", uzers::get_current_uid())))
}

#[cfg(not(unix))]
const fn account() -> Option<String> {
    None
}
