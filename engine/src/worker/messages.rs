//! What the coordinator and a measuring thread say to each other.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::measure::schedule::{Span, Turn};
use crate::net::read_ahead::ReadAhead;
use crate::net::sys::Waker;
use crate::record::Notice;

/// From the coordinator.
#[derive(Debug, Clone)]
pub enum WorkerCommand {
    Start { at_ns: u64, window: Option<Span> },
    Window(Span),
    Rest { at_ns: u64 },
    Turns { id: u32, turns: Arc<[Turn]> },
    CloseWindow { id: u32, at_ns: u64 },
    Stop { at_ns: u64 },
}

/// To the coordinator.
#[derive(Debug)]
pub enum WorkerMessage {
    Ready {
        thread: usize,
        waker: Waker,
    },
    Notice(Notice),
    /// This thread has nothing left to send.
    Finished {
        thread: usize,
        at_ns: u64,
    },
    Failed(String),
}

/// A thread's place among the others and its line to the coordinator.
pub struct WorkerLink {
    pub read_ahead: ReadAhead,
    pub thread: usize,
    pub threads: usize,
    pub commands: Receiver<WorkerCommand>,
    pub messages: MessageSink,
}

/// Takes news to the coordinator; false when it is gone.
pub type MessageSink = Box<dyn Fn(WorkerMessage) -> bool + Send>;
