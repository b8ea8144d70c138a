//! `procession bench`: each workload runs small and says what it promises, and
//! options that make no sense are refused in words.

mod closing;
mod options;

/// Tests pass errors up; the harness prints them.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs `procession bench` with these arguments, separated by blanks, below a directory of its own.
fn bench(arguments: &str) -> Outcome<std::process::Output> {
    let data = tempfile::tempdir()?;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_procession"))
        .arg("bench")
        .args(arguments.split_whitespace())
        .arg("--data")
        .arg(data.path())
        .stdin(std::process::Stdio::null())
        .output()?;
    let left = std::fs::read_dir(data.path())?.count();
    assert_eq!(left, 0, "it left files behind");
    Ok(output)
}
