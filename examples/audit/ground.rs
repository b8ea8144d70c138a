//! A small root to audit, for tests: twelve packages, on which something may differ.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use md5::{Digest, Md5};
use tempfile::TempDir;

type Tested<T = ()> = Result<T, Box<dyn Error>>;

/// A root of twelve packages. The first two need each other.
const PACKAGES: [(&str, &str); 12] = [
    ("libc", "Depends: libgcc\nMulti-Arch: same\nSection: libs"),
    ("libgcc", "Depends: libc (>= 2.36)\nSection: libs"),
    (
        "dash",
        "Pre-Depends: libc\nSection: shells\nConffiles:\n /etc/dash.conf {conffile}",
    ),
    ("bash", "Depends: libc:any\nSection: shells"),
    ("tool", "Depends: bash | dash, libc\nSection: utils"),
    ("data", "Section: non-free/doc"),
    ("app", "Depends: none-such | data\nSection: utils"),
    ("locked", "Section: utils"),
    ("viewer", "Depends: locked, libgcc\nSection: utils"),
    ("nano", "Provides: editor (= 1)\nDepends: libc\nSection: editors"),
    ("notes", "Depends: editor\nSection: editors"),
    ("perl", "Depends: dash"),
];

/// A directory with a root and a place for data.
pub(crate) struct Ground(TempDir);

impl Ground {
    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, package: &str) -> PathBuf {
        self.root().join(format!("usr/share/{package}/file"))
    }

    /// Makes a root on which nothing differs.
    pub(crate) fn intact() -> Tested<Self> {
        let ground = Self(tempfile::tempdir()?);
        let records = ground.root().join("var/lib/dpkg");
        fs::create_dir_all(records.join("info"))?;
        fs::create_dir_all(ground.root().join("etc"))?;
        fs::write(ground.root().join("etc/dash.conf"), "prompt")?;
        let mut status = String::new();
        for (package, fields) in PACKAGES {
            let fields = fields.replace("{conffile}", &checksum("prompt"));
            status.push_str(&format!(
                "Package: {package}\nStatus: install ok installed\nVersion: 1.0\nArchitecture: amd64\n{fields}\n\n"
            ));
            ground.reinstall(package)?;
            let name = if package == "libc" { "libc:amd64" } else { package };
            let conffile = if package == "dash" { "/etc/dash.conf\n" } else { "" };
            let list = format!("/.\n/usr/share/{package}\n/usr/share/{package}/file\n{conffile}");
            fs::write(records.join(format!("info/{name}.list")), list)?;
            let sums = format!("{}  usr/share/{package}/file\n", checksum(package));
            fs::write(records.join(format!("info/{name}.md5sums")), sums)?;
        }
        status.push_str("Package: gone\nStatus: deinstall ok not-installed\n\n");
        fs::write(records.join("status"), status)?;
        // Records that name architectures, and which there are.
        fs::write(records.join("info/format"), "1\n")?;
        fs::write(records.join("arch"), "amd64\ni386\n")?;
        // Another package has moved perl's file away.
        let moved = "/usr/share/perl/file\n/usr/share/perl/file.moved\ndash\n";
        fs::write(records.join("diversions"), moved)?;
        fs::rename(ground.file("perl"), ground.root().join("usr/share/perl/file.moved"))?;
        Ok(ground)
    }

    /// Makes a root with a changed file, a missing one and one that nobody can read.
    pub(crate) fn damaged() -> Tested<Self> {
        let ground = Self::intact()?;
        fs::write(ground.file("bash"), "something else")?;
        fs::remove_file(ground.file("data"))?;
        // Root may read everything. A directory that is a link to itself leads nobody anywhere.
        let directory = ground.root().join("usr/share/locked");
        fs::remove_dir_all(&directory)?;
        symlink("locked", directory)?;
        Ok(ground)
    }

    /// Puts a package's file there, as it should be.
    pub(crate) fn reinstall(&self, package: &str) -> Tested {
        let directory = self.root().join("usr/share").join(package);
        if directory.is_symlink() {
            fs::remove_file(&directory)?;
        }
        fs::create_dir_all(directory)?;
        Ok(fs::write(self.file(package), package)?)
    }

    /// Returns the report: each file with its text.
    pub(crate) fn report(&self, data: &str) -> Tested<BTreeMap<String, String>> {
        let mut report = BTreeMap::new();
        for file in fs::read_dir(self.data(data).join("report"))? {
            let file = file?;
            report.insert(file.file_name().display().to_string(), fs::read_to_string(file.path())?);
        }
        Ok(report)
    }

    /// Returns the lines of all packages.
    pub(crate) fn lines(&self, data: &str) -> Tested<Vec<String>> {
        let report = self.report(data)?;
        let sections = report.iter().filter(|(name, _)| name.ends_with(".txt"));
        let mut lines: Vec<String> = sections.flat_map(|(_, text)| text.lines()).map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    }
}

pub(crate) fn checksum(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
