//! The buffer ring that io_uring receives into. Memory belongs to bytes in transit, not to
//! connections: a million idle connections need none.

use std::io;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Buffers at the beginning: few stay in the cache. More are added when they do not suffice.
const MIN_BUFFERS: u16 = 16;
const MAX_BUFFERS: u16 = 2048;
const BYTES: usize = 16 * 1024;
/// Not a power of two: the beginnings of the buffers would compete for the same cache lines.
const STRIDE: usize = BYTES + 3 * 64;

/// A buffer that the kernel has filled. Only its ring makes one, and takes it back.
#[derive(Debug)]
pub struct Filled(NonZero<u16>);

impl Filled {
    fn index(&self) -> u16 {
        self.0.get() - 1
    }
}

/// Buffers of one size, shared with the kernel.
pub struct BufferRing {
    memory: Mapping,
    ring: Mapping,
    /// Buffers in use so far.
    count: u16,
    tail: u16,
}

impl BufferRing {
    pub fn new(submitter: &Submitter<'_>, group: u16) -> io::Result<Self> {
        let mut buffers = Self {
            memory: Mapping::new(usize::from(MAX_BUFFERS) * STRIDE)?,
            ring: Mapping::new(usize::from(MAX_BUFFERS) * size_of::<BufRingEntry>())?,
            count: 0,
            tail: 0,
        };
        // SAFETY: the mapping is page aligned, holds `MAX_BUFFERS` entries, and lives as long as this
        // value; before its owner drops it, it has the kernel cancel whatever uses it, or leaks it.
        unsafe {
            submitter.register_buf_ring_with_flags(buffers.ring.address(), MAX_BUFFERS, group, 0)?
        };
        buffers.add(MIN_BUFFERS);
        Ok(buffers)
    }

    /// Doubles the buffers, up to a limit: called when the kernel found none.
    pub fn grow(&mut self) {
        self.add(self.count);
    }

    fn add(&mut self, more: u16) {
        let count = (self.count + more).min(MAX_BUFFERS);
        for index in self.count..count {
            self.put_index(index);
        }
        self.count = count;
        self.publish();
    }

    /// The buffer of a completion; `None`: there is none of this number.
    #[inline]
    pub fn filled(&self, index: u16) -> Option<Filled> {
        let known = index < self.count;
        known.then(|| NonZero::new(index + 1).map(Filled))?
    }

    /// So many bytes of a buffer, from there on.
    #[inline]
    pub fn bytes(&self, buffer: &Filled, from: usize, length: u32) -> &[u8] {
        let index = buffer.index();
        let from = from.min(BYTES);
        let length = (length as usize).min(BYTES - from);
        // SAFETY: the buffer is one of this ring, so it lies within the mapping (zeroed when made), and
        // the kernel does not write to it before it is put back, which takes the value.
        unsafe {
            std::slice::from_raw_parts(
                self.memory
                    .start
                    .as_ptr()
                    .add(usize::from(index) * STRIDE + from),
                length,
            )
        }
    }

    /// Gives a buffer back; the kernel sees it after [`Self::publish`].
    #[inline]
    pub fn put(&mut self, buffer: Filled) {
        self.put_index(buffer.index());
    }

    #[inline]
    fn put_index(&mut self, index: u16) {
        let at = usize::from(self.tail & (MAX_BUFFERS - 1));
        // SAFETY: `at` is below the number of entries, and the kernel does not read beyond the
        // published tail.
        let entry = unsafe { &mut *self.ring.start.as_ptr().cast::<BufRingEntry>().add(at) };
        entry.set_addr(self.memory.address() + (usize::from(index) * STRIDE) as u64);
        entry.set_len(BYTES as u32);
        entry.set_bid(index);
        self.tail = self.tail.wrapping_add(1);
    }

    /// The memory stays mapped: the kernel may still write to it.
    pub fn leak(&mut self) {
        self.memory.leaked = true;
        self.ring.leaked = true;
    }

    #[inline]
    pub fn publish(&mut self) {
        // SAFETY: the tail field lies within the first entry, is aligned, and is shared with the
        // kernel, which only reads it.
        let tail =
            unsafe { &*BufRingEntry::tail(self.ring.start.as_ptr().cast()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Anonymous memory, page aligned and zeroed.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    leaked: bool,
}

// SAFETY: the mapping is owned memory without any tie to the thread that made it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(length: usize) -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new anonymous mapping touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            length,
            leaked: false,
        })
    }

    fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.leaked {
            return;
        }
        // SAFETY: the mapping was made with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
