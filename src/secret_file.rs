//! Secret files: the private key and the password of the server.
//!
//! Source: PostgreSQL's `check_ssl_key_file_permissions` (be-secure-common.c). The file must
//! belong to the server's user without access for group and others, or to root with at most read
//! access for its group.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Reads a file after checking its owner and mode. `what` is its name in messages.
///
/// # Errors
///
/// [`Error::Usage`] if other users may access it; [`Error::File`] if it cannot be read.
pub(crate) fn read(path: &Path, what: &str) -> Result<Vec<u8>> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    // The open file is checked, so that the checked and the read file are the same.
    #[expect(clippy::disallowed_methods, reason = "owner and mode of the open file are checked")]
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if let Some(reason) = exposure(metadata.uid(), own, metadata.mode()) {
        let message = format!("{what} \"{}\" {reason}", path.display());
        return Err(Error::Usage(message));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns the violated rule for owner and mode of a file, if any.
fn exposure(owner: u32, own: u32, mode: u32) -> Option<&'static str> {
    if owner != own && owner != 0 {
        return Some("must be owned by the database user or root");
    }
    let others = if owner == own { 0o077 } else { 0o037 };
    (mode & others != 0).then_some(
        "has group or world access; it must have permissions u=rw (0600) or less if owned by the \
         database user, or permissions u=rw,g=r (0640) or less if owned by root",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_file_permissions_match_postgresql() {
        for mode in [0o600, 0o400, 0o700] {
            assert_eq!(exposure(7, 7, mode), None, "{mode:o}");
        }
        for mode in [0o640, 0o604, 0o620, 0o601] {
            assert!(exposure(7, 7, mode).is_some(), "{mode:o}");
            assert!(exposure(0, 0, mode).is_some(), "{mode:o}");
        }
        assert_eq!(exposure(0, 7, 0o640), None);
        assert_eq!(exposure(0, 7, 0o600), None);
        for mode in [0o660, 0o650, 0o644, 0o641] {
            assert!(exposure(0, 7, mode).is_some(), "{mode:o}");
        }
        assert!(exposure(8, 7, 0o600).is_some());
    }
}
