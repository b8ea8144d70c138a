//! The table of legal transitions, printed, equals the one that users read.

use std::path::Path;

use procession_kernel::ProcedureState;

#[test]
fn the_printed_table_equals_the_documented_one() -> Result<(), Box<dyn std::error::Error>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lifecycle.md");
    let page = std::fs::read_to_string(page)?;
    let (_, behind) = page
        .split_once("<!-- table -->")
        .ok_or("the page has no table marker")?;
    let (shown, _) = behind
        .split_once("<!-- /table -->")
        .ok_or("the table has no end marker")?;
    let printed = ProcedureState::table();
    assert_eq!(
        shown.trim(),
        printed,
        "put this between the markers of docs/reference/lifecycle.md:\n{printed}"
    );
    Ok(())
}

#[test]
fn an_end_is_an_end() {
    for next in ProcedureState::ALL {
        let stays = next == ProcedureState::RolledBack;
        assert_eq!(ProcedureState::RolledBack.may_become(next), stays);
    }
}
