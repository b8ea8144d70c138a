//! A directory that cannot be written: by its file system, and by its permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::check::{files, refused_with, whole};
use crate::disk::{Mounted, apart, skip};
use crate::other::{Other, shell, under};
use crate::place::{ENDLESS, Ground};
use crate::work::Task;

/// Some work, and a kill in the midst of it.
fn begun(ground: &Ground) -> Outcome {
    let mut other = Other::plainly(&ground.task(0, ENDLESS, 100))?;
    other.until("acknowledged", 20)?;
    assert!(other.kill()?);
    Ok(())
}

#[test]
fn on_a_file_system_that_is_read_only_it_does_not_start_and_touches_nothing() -> Outcome {
    let test = "read_only::on_a_file_system_that_is_read_only_it_does_not_start_and_touches_nothing";
    apart(test, || {
        let ground = Ground::new()?;
        begun(&ground)?;
        let disk = Mounted::again(&ground.journal)?;
        disk.remount("ro,bind")?;
        let before = files(&ground.journal)?;
        let mut task = ground.task(ENDLESS, 1, 0);
        let (_, lines) = Other::plainly(&task)?.end()?;
        refused_with(&lines, &["Read-only file system", "make it writable"])?;
        task.journal = ground.journal.join("new");
        let (_, lines) = Other::plainly(&task)?.end()?;
        refused_with(&lines, &["Read-only file system", "make it writable"])?;
        assert!(files(&ground.journal)? == before, "the journal was changed");
        disk.remount("rw,bind")?;
        assert!(whole(&ground)? >= 20);
        Ok(())
    })
}

/// Who may do everything cannot be kept out: then it runs as nobody.
struct Plain {
    binary: PathBuf,
    becomes_nobody: bool,
}

const NOBODY: &str = "65534";

impl Plain {
    fn new(ground: &Ground) -> Outcome<Self> {
        let own = std::env::current_exe()?;
        let id = Command::new("id").arg("-u").output()?;
        let becomes_nobody = id.stdout == b"0\n";
        if !becomes_nobody {
            return Ok(Self {
                binary: own,
                becomes_nobody,
            });
        }
        // The one that runs may lie where nobody may look. Another process copies it:
        // what is open for writing here, a child of another test has open, too, for a moment.
        let binary = ground.path().join("binary");
        shell("cp \"$1\" \"$2\"", &[own.as_ref(), binary.as_ref()])?;
        fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o777))?;
        Ok(Self { binary, becomes_nobody })
    }

    fn command(&self) -> Command {
        if !self.becomes_nobody {
            return Command::new(&self.binary);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(&self.binary);
        command
    }

    fn start(&self, task: &Task) -> Outcome<Other> {
        Other::start(under(self.command(), task))
    }

    /// Makes the journal its own, and writable or not.
    fn permit(&self, journal: &Path, mode: &str) -> Outcome {
        if self.becomes_nobody {
            shell("chown -R \"$1:$1\" \"$2\"", &[NOBODY.as_ref(), journal.as_ref()])?;
        }
        shell("chmod -R \"$1\" \"$2\"", &[mode.as_ref(), journal.as_ref()])
    }
}

#[test]
fn without_the_permission_to_write_it_does_not_start_and_touches_nothing() -> Outcome {
    let ground = Ground::new()?;
    let plain = Plain::new(&ground)?;
    match plain.command().arg("--list").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip("read_only", &String::from_utf8_lossy(&output.stderr)),
        Err(error) => return skip("read_only", &format!("setpriv: {error}")),
    }
    begun(&ground)?;
    plain.permit(&ground.journal, "a-w")?;
    let before = files(&ground.journal)?;
    let (_, lines) = plain.start(&ground.task(ENDLESS, 1, 0))?.end()?;
    refused_with(&lines, &["Permission denied", "let this process write there"])?;
    assert!(files(&ground.journal)? == before, "the journal was changed");
    plain.permit(&ground.journal, "u+w")?;
    assert!(whole(&ground)? >= 20);
    Ok(())
}
