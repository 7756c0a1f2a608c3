//! Plain files, read whole. Must not know what a name in a script means.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The longest file that a script reads.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A file, whole. A pipe or a device is not opened: it may have no end, or keep the thread waiting.
pub fn whole(path: &Path) -> io::Result<Vec<u8>> {
    only_plain(&fs::metadata(path)?)?;
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path)?.take(MAX_BYTES + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it has more than {MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// An error for what is no plain file.
pub fn only_plain(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let (kind, what) = if found.is_dir() {
        (io::ErrorKind::IsADirectory, "a folder")
    } else {
        (io::ErrorKind::InvalidInput, "a pipe or a device")
    };
    Err(io::Error::new(
        kind,
        format!("it is {what}, expected a plain file"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_that_have_an_end_are_read() {
        let refused = |path: &str| whole(Path::new(path)).unwrap_err();
        assert_eq!(refused("/dev/zero").kind(), io::ErrorKind::InvalidInput);
        assert_eq!(refused("/").kind(), io::ErrorKind::IsADirectory);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("long");
        let long = fs::File::create(&file).unwrap();
        long.set_len(MAX_BYTES).unwrap();
        assert_eq!(whole(&file).unwrap().len() as u64, MAX_BYTES);
        long.set_len(MAX_BYTES + 1).unwrap();
        let error = whole(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error.to_string().contains("more than 67108864 bytes"),
            "{error}"
        );
    }
}
