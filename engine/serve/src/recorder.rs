//! Writes the bytes of the requests as they came, up to a bound, so that the requests of two
//! clients can be compared byte by byte. It knows nothing of HTTP.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
struct State {
    file: File,
    left: u64,
}

/// One file for all connections: bytes of different connections are not told apart.
#[derive(Debug)]
pub struct Recorder(Mutex<State>);

impl Recorder {
    /// Creates the file; the error is one sentence.
    pub fn create(path: &Path, limit_bytes: u64) -> Result<Self, String> {
        let file = File::create(path)
            .map_err(|error| format!("--record {}: cannot be written: {error}", path.display()))?;
        Ok(Self(Mutex::new(State {
            file,
            left: limit_bytes,
        })))
    }

    /// Writes what still fits. After a failed write (a full disk) nothing more is written.
    pub fn write(&self, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let take = state.left.min(bytes.len() as u64) as usize;
        state.left -= take as u64;
        if take > 0 && state.file.write_all(&bytes[..take]).is_err() {
            eprintln!("prony-engine serve: the record cannot be written any longer");
            state.left = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let recorder = Recorder::create(file.path(), 8).unwrap();
        recorder.write(b"hello ");
        recorder.write(b"world");
        recorder.write(b"!");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"hello wo");
        assert!(Recorder::create(Path::new("/no/such/folder/file"), 8).is_err());
    }
}
