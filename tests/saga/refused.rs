//! Definitions that call what their host does not register.

use procession::saga::{Call, Fault, Sagas};

use crate::Tested;

#[test]
fn g_027_a_script_without_a_closure_is_refused() -> Tested {
    let file = "simple_statelang_with_script.json";
    let path = std::path::Path::new(crate::ROOT).join("src/cli/saga/demo/data/seata");
    let noop = async |_: Call, (): ()| -> Result<(), Fault> { Ok(()) };
    let built = Sagas::builder()
        .file(path.join(file))
        .method("demoService", "foo", noop)
        .method("demoService", "bar", noop)
        .build();
    let refused = built.err().ok_or("it is built")?.to_string();
    let text = "#/States/ScriptState/ScriptType: state [ScriptState]: ScriptType \"groovy\" cannot run here; register \
                .script(\"simpleScriptTaskStateMachine\", \"ScriptState\", ..)";
    assert!(refused.contains(text), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
    Ok(())
}
