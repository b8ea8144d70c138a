//! `${NAME}`: a variable of the environment, where a services file is not to have what stands there.

/// Puts the environment's variables into a text.
///
/// # Errors
///
/// A sentence, if a variable is not set, or a brace is missing.
pub(super) fn fill(text: &str) -> Result<String, String> {
    fill_from(text, |name| std::env::var(name).ok())
}

fn fill_from(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after
            .split_once('}')
            .ok_or_else(|| format!("\"${{{after}\" has no closing brace; write ${{NAME}}"))?;
        let value = variable(name)
            .ok_or_else(|| format!("the environment has no variable {name}; set it before the saga is run"))?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::fill_from;

    #[test]
    fn variables_are_filled_in_once() {
        let variable = |name: &str| match name {
            "A" => Some("${B}".to_owned()),
            _ => None,
        };
        assert_eq!(fill_from("x", variable).as_deref(), Ok("x"));
        assert_eq!(
            fill_from("${A}/{method}/${A}", variable).as_deref(),
            Ok("${B}/{method}/${B}")
        );
        let missing = fill_from("${B}", variable).unwrap_err();
        assert_eq!(
            missing,
            "the environment has no variable B; set it before the saga is run"
        );
        let open = fill_from("a${B", variable).unwrap_err();
        assert_eq!(open, "\"${B\" has no closing brace; write ${NAME}");
    }
}
