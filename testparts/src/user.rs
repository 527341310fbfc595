//! The user a server runs as. PostgreSQL refuses to run as root.
//!
//! Never: another user when the tests do not run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Users to run as instead of root; the first that exists is taken.
const INSTEAD_OF_ROOT: [&str; 2] = ["postgres", "nobody"];

/// Somebody else than root, or nobody in particular.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User(Option<(u32, u32)>);

impl User {
    /// Ourselves, or one of [`INSTEAD_OF_ROOT`] if we are root.
    pub(crate) fn not_root() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = INSTEAD_OF_ROOT.iter().find_map(|name| ids(&users, name));
        let why = "PostgreSQL refuses to run as root: run the tests as another user, or add a \
                   user named postgres";
        found.map(|ids| Self(Some(ids))).ok_or_else(|| why.to_owned())
    }

    /// Lets `command` run as this user.
    pub(crate) fn run(self, command: &mut Command) -> &mut Command {
        match self.0 {
            Some((user, group)) => command.uid(user).gid(group),
            None => command,
        }
    }

    /// Makes a folder or a file belong to this user.
    pub(crate) fn own(self, path: &Path) -> Result<(), String> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        chown(path, Some(user), Some(group))
            .map_err(|error| format!("{} could not be given away: {error}", path.display()))
    }
}

/// User and group number of `name` in the text of `/etc/passwd`.
fn ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_whole_name() {
        let users = "root:x:0:0::/:/bin/sh\nnobody2:x:7:8::/:/bin/sh\nnobody:x:3:4::/:/bin/sh\n";
        assert_eq!(ids(users, "nobody"), Some((3, 4)));
        assert_eq!(ids(users, "postgres"), None);
    }
}
