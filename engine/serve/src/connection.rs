//! What a connection and its requests share, and how it ends.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::thread::Thread;

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In order: the sending side ends, reading goes on until the client has closed as well.
    Close,
    /// HTTP/2: GOAWAY, and the end after the streams that were accepted.
    Leave,
    Reset,
    Garbage,
    /// Nothing is answered any more.
    Mute,
    /// A head without an end, of this stream of HTTP/2.
    Endless(Option<u32>),
}

/// What a connection and its requests share.
#[derive(Debug)]
pub struct Connection {
    pub thread: Rc<Thread>,
    /// Among those of its thread.
    pub number: u32,
    /// Requests so far.
    pub served: Cell<u32>,
    /// Output goes a byte at a time.
    pub drip_ns: Cell<Option<u64>>,
    /// The kernel takes no more output for now.
    pub is_blocked: Cell<bool>,
    ending: Cell<Option<Ending>>,
    waker: RefCell<Option<Waker>>,
}

impl Connection {
    pub fn new(thread: &Rc<Thread>) -> Self {
        Self {
            thread: Rc::clone(thread),
            number: thread.connections.replace(thread.connections.get() + 1),
            served: Cell::new(0),
            drip_ns: Cell::new(None),
            is_blocked: Cell::new(false),
            ending: Cell::new(None),
            waker: RefCell::new(None),
        }
    }

    /// Ends the connection, once the output so far is sent.
    pub fn end(&self, ending: Ending) {
        self.ending.set(Some(ending));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub fn is_ending(&self) -> bool {
        self.ending.get().is_some()
    }

    /// What `work` comes to, or how the connection is to end before.
    pub async fn until_ended<T>(&self, work: impl Future<Output = T>) -> Result<T, Ending> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            if let Some(ending) = self.ending.get().filter(|_| !self.is_blocked.get()) {
                self.ending.set(None);
                return Poll::Ready(Err(ending));
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// What `work` comes to, or nothing if the other ends first.
pub fn unless<T>(
    ended: impl Future,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    let (mut ended, mut work) = (Box::pin(ended), Box::pin(work));
    poll_fn(move |context| match ended.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(context).map(Some),
    })
}
