//! The ring of buffers that io_uring receives into: memory belongs to bytes under way, not to connections, so that a million
//! idle connections need none.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Buffers of one size, shared with the kernel.
pub struct BufferRing {
    memory: Mapping,
    ring: Mapping,
    count: u16,
    size: usize,
    tail: u16,
}

impl BufferRing {
    /// `count` must be a power of two.
    pub fn new(submitter: &Submitter<'_>, group: u16, count: u16, size: usize) -> io::Result<Self> {
        let mut buffers = Self {
            memory: Mapping::new(usize::from(count) * size)?,
            ring: Mapping::new(usize::from(count) * size_of::<BufRingEntry>())?,
            count,
            size,
            tail: 0,
        };
        // SAFETY: the mapping is page aligned, holds `count` entries, and lives as long as this value, which its owner drops
        // after the ring.
        unsafe { submitter.register_buf_ring_with_flags(buffers.ring.address(), count, group, 0)? };
        for index in 0..count {
            buffers.put(index);
        }
        buffers.publish();
        Ok(buffers)
    }

    #[inline]
    pub fn bytes(&self, index: u16, length: u32) -> &[u8] {
        let length = (length as usize).min(self.size);
        // SAFETY: the buffer lies within the mapping (zeroed when made), and the kernel does not write to it before it is put back.
        unsafe {
            std::slice::from_raw_parts(
                self.memory
                    .start
                    .as_ptr()
                    .add(usize::from(index) * self.size),
                length,
            )
        }
    }

    /// Gives a buffer back; the kernel sees it after [`Self::publish`].
    #[inline]
    pub fn put(&mut self, index: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        // SAFETY: `at` is below the number of entries, and the kernel does not read beyond the published tail.
        let entry = unsafe { &mut *self.ring.start.as_ptr().cast::<BufRingEntry>().add(at) };
        entry.set_addr(self.memory.address() + (usize::from(index) * self.size) as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(index);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub fn publish(&mut self) {
        // SAFETY: the tail field lies within the first entry, is aligned, and is shared with the kernel, which only reads it.
        let tail =
            unsafe { &*BufRingEntry::tail(self.ring.start.as_ptr().cast()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Anonymous memory, page aligned and zeroed.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
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
        Ok(Self { start, length })
    }

    fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
