//! Pictures, and by them what a definition is made of: the designer's form is the same graph as the standard one.

use std::fs;

use super::{Tested, check, machine, seata, task};
use crate::Definitions;

fn file(name: &str) -> Result<Vec<u8>, std::io::Error> {
    fs::read(seata().join(name))
}

fn mermaid(name: &str) -> Result<String, Box<dyn std::error::Error>> {
    let checked = Definitions::new().json(name, file(name)?).check()?;
    Ok(checked.machines().next().ok_or("there is a machine")?.mermaid())
}

#[test]
fn g_042_the_nested_file_of_upstream_is_drawn_with_a_frame_for_each_branch() -> Tested {
    let drawn = mermaid("simple_statelang_with_fork.json")?;
    let expected = r#"flowchart TD
  start((" ")) --> s0
  s0["FirstState<br>demoService.foo"]
  s1[/"OuterForkState<br>2 at once, within 2000 ms"\]
  s9[\"OuterJoinState"/]
  s10(["SucceedState"])
  s11{{"CompensationTrigger<br>undo all"}}
  s12["CompensateFirstState<br>demoService.compensateFoo"]
  s18(["FailState<br>NOT_FOUND"])
  subgraph r1["OuterForkState: SecondState"]
    s2["SecondState<br>demoService.bar"]
    s3[/"InnerForkState<br>1 at once"\]
    s6[\"InnerJoinState"/]
    s7["SixthState<br>demoService.bar"]
    s13["CompensateSecondState<br>demoService.compensateBar"]
    s17["CompensateSixthState<br>demoService.compensateBar"]
    subgraph r3["InnerForkState: ForthState"]
      s4["ForthState<br>demoService.bar"]
      s15["CompensateForthState<br>demoService.compensateBar"]
    end
    subgraph r4["InnerForkState: FifthState"]
      s5["FifthState<br>demoService.bar"]
      s16["CompensateFifthState<br>demoService.compensateBar"]
    end
  end
  subgraph r2["OuterForkState: ThirdState"]
    s8["ThirdState<br>demoService.bar"]
    s14["CompensateThirdState<br>demoService.compensateBar"]
  end
  s0 --> s1
  s0 -.->|"undo"| s12
  s1 --> s2
  s1 --> s8
  s2 --> s3
  s2 -.->|"undo"| s13
  s3 --> s4
  s3 --> s5
  s4 --> s6
  s4 -->|"catch DemoException"| s11
  s4 -.->|"undo"| s15
  s5 --> s6
  s5 -.->|"undo"| s16
  s6 --> s7
  s7 --> s9
  s7 -.->|"undo"| s17
  s8 --> s9
  s8 -.->|"undo"| s14
  s9 --> s10
  s11 --> s18
"#;
    assert_eq!(drawn, expected);
    Ok(())
}

/// A Catch is on the task that it overlaps, a compensator at the end of its edge, a Choice has its expressions.
#[test]
fn g_034_the_designers_form_is_read_as_a_machine() -> Tested {
    let drawn = mermaid("designer_statelang_with_compensation_and_sub_machine.json")?;
    assert_eq!(drawn, mermaid("statelang__simple_statemachine_with_layout.json")?);
    for line in [
        "start((\" \")) --> s0",
        "s4[[\"CallSubStateMachine<br>simpleCompensationStateMachine\"]]",
        "s0 --> s1",
        "s0 -.->|\"undo\"| s5",
        "s1 -->|\"[a] == 1\"| s2",
        "s1 -->|\"[a] == 2\"| s4",
        "s1 -->|\"else\"| s7",
        "s2 --> s3",
        "s2 -->|\"catch FrameworkException\"| s6",
        "s4 --> s3",
        "s6 --> s7",
    ] {
        assert!(
            drawn.lines().any(|drawn| drawn.trim() == line),
            "{line} is not in\n{drawn}"
        );
    }
    Ok(())
}

#[test]
fn g_066_a_fork_of_the_designer_has_its_branches_in_the_order_of_its_edges() -> Tested {
    let drawn = mermaid("fork__simple_statemachine_with_layout.json")?;
    for lines in [
        "s8[/\"ForkState<br>within 3600 ms\"\\]",
        "subgraph r1[\"ForkState: ThirdState\"]\n    s9[\"ThirdState<br>demoService.foo\"]\n  end",
        "subgraph r2[\"ForkState: ForthState\"]\n    s10[\"ForthState<br>demoService.bar\"]\n  end",
        "s1 -->|\"[a] == 3\"| s8",
        "s9 --> s11",
        "s10 --> s11",
        "s11 --> s3",
    ] {
        assert!(drawn.contains(lines), "{lines} is not in\n{drawn}");
    }
    Ok(())
}

#[test]
fn names_of_others_are_escaped_in_pictures() -> Tested {
    let text = machine(&[(r#"a\"b\\<c>`\n#"#, &task(""))]);
    let checked = check(&text)?;
    let outline = checked.machines().next().ok_or("there is a machine")?;
    let line = outline.mermaid().lines().nth(2).map(str::to_owned);
    assert_eq!(
        line.as_deref(),
        Some("  s0[\"a#quot;b\\#lt;c#gt;#96;\\n#35;<br>svc.m\"]")
    );
    let dot = outline.dot();
    assert!(
        dot.contains("s0 [shape=box, label=\"a\\\"b\\\\<c>`\\\\n#\\nsvc.m\"];"),
        "{dot}"
    );
    Ok(())
}

#[test]
fn a_machine_is_drawn_for_graphviz() -> Tested {
    let undone = format!(r#"{}, "CompensateState": "U""#, task("F"));
    let fork = r#""Type": "Fork", "Branches": ["B", "J"]"#;
    let choice = r#""Type": "Choice", "Choices": [{"Expression": "[a] == 1", "Next": "A"}], "Default": "J""#;
    let (join, undo) = (r#""Type": "Join""#, task(""));
    let choice_first = [
        ("A", undone.as_str()),
        ("F", fork),
        ("B", choice),
        ("J", join),
        ("U", undo.as_str()),
    ];
    let choice = choice.replace("\"A\"", "\"J\"");
    let states = choice_first.map(|(name, state)| (name, if name == "B" { choice.as_str() } else { state }));
    let checked = check(&machine(&states))?;
    let outline = checked.machines().next().ok_or("there is a machine")?;
    let expected = r#"digraph "m" {
  node [shape=box];
  start [shape=circle, label=""];
  start -> s0;
  s0 [shape=box, label="A\nsvc.m"];
  s1 [shape=trapezium, label="F"];
  s3 [shape=invtrapezium, label="J"];
  s4 [shape=box, label="U\nsvc.m"];
  subgraph cluster_1 {
    label="F: B";
    s2 [shape=diamond, label="B"];
  }
  subgraph cluster_2 {
    label="F: J";
  }
  s0 -> s1;
  s0 -> s4 [label="undo", style=dashed];
  s1 -> s2;
  s1 -> s3;
  s2 -> s3 [label="[a] == 1"];
  s2 -> s3 [label="else"];
}
"#;
    assert_eq!(outline.dot(), expected);
    Ok(())
}
