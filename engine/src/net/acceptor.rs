//! One ring that accepts connections as direct descriptors, receives from them and sends to them: the serving side's way to io_uring.
//! Bytes and keys only; it knows nothing of HTTP or of how many rings a thread has.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::buffers::BufferRing;
use super::sys::{Waker, raise_file_limit, until};

/// Events that fit per entry of the queue of submissions.
const COMPLETIONS: u32 = 16;
const BUFFER_GROUP: u16 = 0;
/// The kernel allows no larger table than the process may have files; beyond this another ring is as good.
const MAX_SLOTS: u64 = 1 << 16;
/// A send buffer that grew larger than this is not kept for the next send.
const KEPT_BYTES: usize = 128 * 1024;
/// Lingering for no time: the close that follows is a reset.
static NO_LINGER: libc::linger = libc::linger {
    l_onoff: 1,
    l_linger: 0,
};

const ACCEPT: u64 = 1;
const SEND: u64 = 2;
const RECEIVE: u64 = 3;
const SILENT: u64 = 4;
const MAIL: u64 = 5;
const BELL: u64 = 6;
const SHUT: u64 = 7;

/// A connection: its slot in the ring's file table in the lower half, and in the upper what tells it from earlier ones (28 bits count).
pub type Key = u64;
const KEY: u64 = 0x0fff_ffff_ffff_ffff;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A connection is in this slot.
    Accepted(u32),
    /// With the `errno`.
    NotAccepted(i32),
    /// Bytes, in the buffer of this index and length; give it back by [`Acceptor::release`].
    Received(Key, u16, u32),
    /// Nothing more is received until asked for again: 0 at the end of the stream, else an `errno`.
    Silent(Key, i32),
    /// A send ended: which, how many bytes were taken, or an `errno` below zero.
    Sent(Key, u32, i32),
    /// The descriptor that was given to [`Acceptor::watch`] is readable.
    Mail,
}

/// Bytes under way to the kernel. They must not move or change until the send has ended.
#[derive(Debug, Default)]
struct Outgoing {
    key: Key,
    bytes: Vec<u8>,
    sent: usize,
    /// Nothing is heard of it unless it fails.
    quiet: bool,
}

/// See the module.
pub struct Acceptor {
    // The order matters when dropped: the ring goes before the memory that the kernel may use through it.
    ring: IoUring,
    buffers: BufferRing,
    outgoing: Vec<Outgoing>,
    idle: Vec<u32>,
    /// Quiet sends that were prepared since the last wait.
    quiet: Vec<u32>,
    slots: u32,
    happened: VecDeque<Happening>,
    /// Connections whose sending side is being ended, and whether they are to be closed after that. The kernel ends it on a
    /// thread of its own and looks the slot up only there: were the slot free before, it would end the next connection's.
    shutting: HashMap<Key, bool>,
    mail: Option<RawFd>,
    bell: Option<Waker>,
    /// An accept is under way.
    accepting: bool,
    /// It goes on by itself.
    repeating: bool,
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Acceptor")
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

impl Acceptor {
    /// A ring with as many slots as the process may have files, and a queue (a power of two) of submissions.
    pub fn new(queue: u32) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS * queue);
        // Saves an indirection per entry; not there before Linux 6.6.
        let ring = builder
            .clone()
            .setup_no_sqarray()
            .build(queue)
            .or_else(|_| builder.build(queue))?;
        let slots = raise_file_limit().min(MAX_SLOTS) as u32;
        ring.submitter().register_files_sparse(slots)?;
        let buffers = BufferRing::new(&ring.submitter(), BUFFER_GROUP)?;
        Ok(Self {
            ring,
            buffers,
            outgoing: Vec::new(),
            idle: Vec::new(),
            quiet: Vec::new(),
            slots,
            happened: VecDeque::new(),
            shutting: HashMap::new(),
            mail: None,
            bell: None,
            accepting: false,
            repeating: false,
        })
    }

    /// How many connections fit.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Rings `bell` when something has happened. (To poll the ring itself would not do: with deferred task run the kernel wakes
    /// no poller.)
    pub fn ring_when_happened(&self, bell: &Waker) -> io::Result<()> {
        self.ring.submitter().register_eventfd(bell.fd())
    }

    /// Lets [`Self::wait`] return also when `bell` is rung.
    pub fn wait_for_bell(&mut self, bell: Waker) {
        self.bell = Some(bell);
        self.arm_bell();
    }

    fn arm_bell(&mut self) {
        if let Some(bell) = &self.bell {
            let entry = poll(bell.fd(), BELL);
            self.push(&entry);
        }
    }

    /// Whether there is something to submit or to fetch, without asking the kernel.
    pub fn has_work(&mut self) -> bool {
        let queue = self.ring.submission();
        if !queue.is_empty() || queue.taskrun() || queue.cq_overflow() {
            return true;
        }
        drop(queue);
        !self.ring.completion().is_empty()
    }

    /// Whether something has happened that [`Self::next`] has not told yet.
    pub fn has_happened(&self) -> bool {
        !self.happened.is_empty()
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: what an entry refers to (outgoing bytes, a static) is owned by this value and dropped after the ring, and not
        // touched before its completion; received bytes go to the registered buffers.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if self.submit().is_err() {
                // Only a ring that is broken for good refuses: the next wait reports it.
                return;
            }
        }
    }

    /// Hands everything prepared to the kernel.
    pub fn submit(&mut self) -> io::Result<()> {
        self.buffers.publish();
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Says so, again and again, when `fd` is readable. It must stay open as long as this value.
    pub fn watch(&mut self, fd: BorrowedFd<'_>) {
        self.mail = Some(fd.as_raw_fd());
        self.arm_mail();
    }

    fn arm_mail(&mut self) {
        if let Some(fd) = self.mail {
            self.push(&poll(fd, MAIL));
        }
    }

    /// Accepts from `listener`: one connection, or one after the other until [`Self::stop_accepting`].
    pub fn accept(&mut self, listener: BorrowedFd<'_>, many: bool) {
        if self.accepting {
            return;
        }
        self.accepting = true;
        self.repeating = many;
        let fd = Fd(listener.as_raw_fd());
        let entry = if many {
            opcode::AcceptMulti::new(fd)
                .allocate_file_index(true)
                .build()
        } else {
            let nobody = std::ptr::null_mut();
            opcode::Accept::new(fd, nobody, std::ptr::null_mut())
                .file_index(Some(DestinationSlot::auto_target()))
                .build()
        };
        self.push(&entry.user_data(ACCEPT << 60));
    }

    /// Ends accepting one after the other; connections that were accepted before this takes effect still come.
    pub fn stop_accepting(&mut self) {
        if self.accepting && std::mem::take(&mut self.repeating) {
            self.cancel(ACCEPT << 60);
        }
    }

    fn cancel(&mut self, operation: u64) {
        let entry = opcode::AsyncCancel::new(operation)
            .build()
            .user_data(SILENT << 60)
            .flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Receives from a connection until [`Happening::Silent`].
    pub fn receive(&mut self, key: Key) {
        let entry = opcode::RecvMulti::new(Fixed(key as u32), BUFFER_GROUP)
            .build()
            .user_data(RECEIVE << 60 | key & KEY);
        self.push(&entry);
    }

    /// Stops receiving; bytes that were received before this takes effect still come.
    pub fn stop_receiving(&mut self, key: Key) {
        self.cancel(RECEIVE << 60 | key & KEY);
    }

    /// Sends `bytes`, which are taken and replaced by an empty buffer. Returns the number of the send. A send that nobody is in a
    /// hurry to hear of (`quiet`) does not end the next wait: [`Happening::Sent`] then comes with whatever else happens.
    pub fn send(&mut self, key: Key, bytes: &mut Vec<u8>, quiet: bool) -> u32 {
        let number = self.idle.pop().unwrap_or_else(|| {
            self.outgoing.push(Outgoing::default());
            (self.outgoing.len() - 1) as u32
        });
        let outgoing = &mut self.outgoing[number as usize];
        outgoing.key = key;
        outgoing.sent = 0;
        outgoing.quiet = quiet;
        std::mem::swap(&mut outgoing.bytes, bytes);
        if quiet {
            self.quiet.push(number);
        }
        self.send_rest(number);
        number
    }

    fn send_rest(&mut self, number: u32) {
        let outgoing = &self.outgoing[number as usize];
        let rest = &outgoing.bytes[outgoing.sent..];
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        // A quiet one is tried once, while it is submitted: taken whole it makes no event, and anything else counts as a failure.
        let patience = if outgoing.quiet {
            libc::MSG_DONTWAIT
        } else {
            0
        };
        let entry = opcode::Send::new(Fixed(outgoing.key as u32), rest.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL | patience)
            .build()
            .user_data(SEND << 60 | u64::from(number));
        let entry = if outgoing.quiet {
            entry.flags(Flags::SKIP_SUCCESS)
        } else {
            entry
        };
        self.push(&entry);
    }

    /// Goes on with a send of which only a part was taken; true when there is nothing left of it.
    pub fn go_on_sending(&mut self, number: u32, taken: u32) -> bool {
        let outgoing = &mut self.outgoing[number as usize];
        outgoing.sent += taken as usize;
        let done = outgoing.sent >= outgoing.bytes.len();
        if !done {
            self.send_rest(number);
        }
        done
    }

    /// Forgets a send that has ended.
    pub fn finish_send(&mut self, number: u32) {
        let bytes = &mut self.outgoing[number as usize].bytes;
        bytes.clear();
        if bytes.capacity() > KEPT_BYTES {
            *bytes = Vec::new();
        }
        self.idle.push(number);
    }

    /// Ends the sending side of a connection.
    pub fn shut_down(&mut self, key: Key) {
        let entry = opcode::Shutdown::new(Fixed(key as u32), libc::SHUT_WR)
            .build()
            .user_data(SHUT << 60 | key & KEY);
        self.push(&entry);
        self.shutting.insert(key & KEY, false);
    }

    /// Makes the close that follows a reset.
    pub fn arm_reset(&mut self, key: Key) {
        let entry = opcode::SetSockOpt::new(
            Fixed(key as u32),
            libc::SOL_SOCKET as u32,
            libc::SO_LINGER as u32,
            (&raw const NO_LINGER).cast(),
            size_of::<libc::linger>() as u32,
        )
        .build()
        .user_data(SILENT << 60)
        .flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Closes a connection: what is still under way for it ends, and its slot is free for another.
    pub fn close(&mut self, key: Key, receiving: bool, sending: Option<u32>) {
        if receiving {
            self.stop_receiving(key);
        }
        if let Some(number) = sending {
            self.cancel(SEND << 60 | u64::from(number));
        }
        match self.shutting.get_mut(&(key & KEY)) {
            Some(to_be_closed) => *to_be_closed = true,
            None => self.free(key),
        }
    }

    fn free(&mut self, key: Key) {
        let entry = opcode::Close::new(Fixed(key as u32))
            .build()
            .user_data(SILENT << 60)
            .flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Hands everything prepared to the kernel and waits until something has happened, until the given monotonic time at most; or
    /// only looks, when that is past.
    pub fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.buffers.publish();
        let waited = match until_ns {
            None => self.ring.submit_and_wait(1),
            Some(at_ns) => {
                let spec = Timespec::from(until(at_ns));
                self.ring
                    .submitter()
                    .submit_with_args(1, &SubmitArgs::new().timespec(&spec))
            }
        };
        if let Err(error) = waited {
            // EBUSY: more has happened than fits, so there is something to deal with first.
            let harmless = [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN];
            if !error
                .raw_os_error()
                .is_some_and(|code| harmless.contains(&code))
            {
                return Err(error);
            }
        }
        let (mut unwatched, mut unheard, mut few) = (false, false, false);
        let (mut blocked, mut shut) = (Vec::new(), Vec::new());
        for entry in self.ring.completion() {
            let (operation, more) = (entry.user_data() >> 60, cqueue::more(entry.flags()));
            match operation {
                ACCEPT if !more => self.accepting = false,
                MAIL => unwatched |= !more,
                BELL => unheard |= !more,
                SHUT => shut.push(entry.user_data() & KEY),
                RECEIVE => few |= entry.result() == -libc::ENOBUFS,
                SEND => {
                    let number = entry.user_data() as u32;
                    let outgoing = &mut self.outgoing[number as usize];
                    if std::mem::take(&mut outgoing.quiet) && entry.result() == -libc::EAGAIN {
                        blocked.push(number);
                        continue;
                    }
                }
                _ => {}
            }
            understand(&entry, &self.outgoing, &mut self.happened);
        }
        self.tell_quiet_sends();
        for number in blocked {
            self.send_rest(number);
        }
        for key in shut {
            if self.shutting.remove(&key) == Some(true) {
                self.free(key);
            }
        }
        if few {
            self.buffers.grow();
        }
        if unwatched {
            self.arm_mail();
        }
        if unheard {
            self.arm_bell();
        }
        Ok(())
    }

    /// Quiet sends that were submitted and made no event were taken whole.
    fn tell_quiet_sends(&mut self) {
        if self.quiet.is_empty() {
            return;
        }
        let queue = self.ring.submission();
        let uncertain = !queue.is_empty() || queue.cq_overflow();
        drop(queue);
        if uncertain {
            return;
        }
        for number in self.quiet.drain(..) {
            let outgoing = &mut self.outgoing[number as usize];
            if std::mem::take(&mut outgoing.quiet) {
                let length = outgoing.bytes.len() as i32;
                // Before what came in answer to it.
                self.happened
                    .push_front(Happening::Sent(outgoing.key, number, length));
            }
        }
    }

    /// What has happened, in order.
    #[inline]
    pub fn next(&mut self) -> Option<Happening> {
        self.happened.pop_front()
    }

    pub fn is_accepting(&self) -> bool {
        self.accepting
    }

    #[inline]
    pub fn bytes(&self, buffer: u16, length: u32) -> &[u8] {
        self.buffers.bytes(buffer, length)
    }

    #[inline]
    pub fn release(&mut self, buffer: u16) {
        self.buffers.put(buffer);
    }
}

/// Says again and again when a descriptor is readable.
fn poll(fd: RawFd, operation: u64) -> Entry {
    opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32)
        .multi(true)
        .build()
        .user_data(operation << 60)
}

fn understand(entry: &cqueue::Entry, outgoing: &[Outgoing], happened: &mut VecDeque<Happening>) {
    let (operation, key) = (entry.user_data() >> 60, entry.user_data() & KEY);
    let result = entry.result();
    match operation {
        ACCEPT if result >= 0 => happened.push_back(Happening::Accepted(result as u32)),
        ACCEPT => happened.push_back(Happening::NotAccepted(-result)),
        RECEIVE => {
            if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
                let length = result.max(0) as u32;
                happened.push_back(Happening::Received(key, buffer, length));
            }
            if !cqueue::more(entry.flags()) {
                // After bytes: the kernel only stopped repeating itself.
                let code = if result > 0 { libc::EAGAIN } else { -result };
                happened.push_back(Happening::Silent(key, code));
            }
        }
        SEND => {
            let number = key as u32;
            if let Some(outgoing) = outgoing.get(number as usize) {
                happened.push_back(Happening::Sent(outgoing.key, number, result));
            }
        }
        MAIL => happened.push_back(Happening::Mail),
        _ => {}
    }
}
