//! Definitions of sagas, of both forms: any bytes are a machine with a picture, or are refused with a text.

use procession::saga::Definitions;

use super::Checked;

pub(crate) fn check(bytes: &[u8]) -> Checked {
    match Definitions::new().json("m.json", bytes).check() {
        Ok(checked) => {
            for machine in checked.machines() {
                assert!(machine.states() > 0, "a machine has the state that it starts with");
                assert!(machine.mermaid().starts_with("flowchart TD\n"));
                assert!(machine.dot().ends_with("}\n"));
            }
            // Warnings refuse nothing, and refuse everything if they are errors.
            let has_warnings = !checked.warnings().is_empty();
            let strict = Definitions::new().json("m.json", bytes).strict(true).check();
            assert_eq!(strict.is_err(), has_warnings);
        }
        Err(errors) => {
            let text = errors.to_string();
            assert!(
                text.lines()
                    .all(|line| line.starts_with("m.json") && line.contains("; ")),
                "{text}"
            );
            assert_eq!(
                text.chars()
                    .filter(|character| character.is_control() && *character != '\n')
                    .count(),
                0
            );
        }
    }
    Ok(())
}
