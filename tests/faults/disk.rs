//! File systems of a test's own, mounted where nobody else sees them: in a mount
//! namespace in which the test runs once more.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::other::shell;

/// Set in the process that runs in a namespace of its own.
const APART: &str = "FAULTS_APART";

/// Says why a test ends early, past the harness, which would keep it to itself.
pub(crate) fn skip(test: &str, reason: &str) -> Outcome {
    writeln!(std::io::stderr(), "{test}: skipped, {}", reason.trim())?;
    Ok(())
}

/// Runs a test in a mount namespace of its own, or says why it cannot.
pub(crate) fn apart(test: &str, scenario: impl FnOnce() -> Outcome) -> Outcome {
    if std::env::var_os(APART).is_some() {
        return scenario();
    }
    let mut reason = String::new();
    for options in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let probe = tempfile::tempdir()?;
        let mut command = Command::new("unshare");
        command.args(options).args(["sh", "-c", "mount -t tmpfs none \"$0\""]);
        match command.arg(probe.path()).output() {
            Ok(output) if output.status.success() => return run_apart(options, test),
            Ok(output) => reason = String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => reason = format!("unshare: {error}"),
        }
    }
    skip(test, &format!("nothing may be mounted here: {reason}"))
}

fn run_apart(options: &[&str], test: &str) -> Outcome {
    let mut command = Command::new("unshare");
    command.args(options).arg(std::env::current_exe()?);
    let output = command
        .args(["--exact", test, "--nocapture"])
        .env(APART, "1")
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        return Err(format!("{}\n{}", text(&output.stdout), text(&output.stderr)).into());
    }
    for line in text(&output.stderr).lines().filter(|line| line.contains("skipped")) {
        writeln!(std::io::stderr(), "{line}")?;
    }
    Ok(())
}

/// Something mounted; unmounted when it goes out of scope.
pub(crate) struct Mounted<'a>(pub(crate) &'a Path);

impl<'a> Mounted<'a> {
    /// A file system in memory of this size, as `mount` reads sizes.
    pub(crate) fn memory(at: &'a Path, size: &str) -> Outcome<Self> {
        std::fs::create_dir_all(at)?;
        shell(
            "mount -t tmpfs -o size=\"$2\" none \"$1\"",
            &[at.as_ref(), size.as_ref()],
        )?;
        Ok(Self(at))
    }

    /// The file system in a file.
    pub(crate) fn image(image: &Path, at: &'a Path) -> Outcome<Self> {
        std::fs::create_dir_all(at)?;
        let script = "mount -o loop,noinit_itable \"$1\" \"$2\"";
        shell(script, &[image.as_ref(), at.as_ref()])?;
        Ok(Self(at))
    }

    /// A directory once more, in its own place, where it can be made read-only.
    pub(crate) fn again(at: &'a Path) -> Outcome<Self> {
        shell("mount --bind \"$1\" \"$1\"", &[at.as_ref()])?;
        Ok(Self(at))
    }

    /// Mounts it with other options.
    pub(crate) fn remount(&self, options: &str) -> Outcome {
        let script = "mount -o remount,\"$2\" \"$1\"";
        shell(script, &[self.0.as_ref(), options.as_ref()])
    }

    /// Unmounts it now, and says if that cannot be.
    pub(crate) fn unmount(self) -> Outcome {
        shell("umount \"$1\"", &[self.0.as_ref()])
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // It may have been unmounted already.
        shell("umount --lazy \"$1\"", &[self.0.as_ref()]).ok();
    }
}
