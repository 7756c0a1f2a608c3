//! A serving thread's runtime, and on the first thread the accepting of connections for all.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::{LocalSet, spawn_local};

use super::counters::Counters;
use super::lifetime;
use super::ready::pollable;
use super::shared::Shared;
use super::thread::Thread;

/// Pause after the kernel refused a connection (no descriptors left).
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Nothing to accept, or nobody any more.
const PASSING: [io::ErrorKind; 3] = [
    io::ErrorKind::WouldBlock,
    io::ErrorKind::Interrupted,
    io::ErrorKind::ConnectionAborted,
];

/// A connection for a thread; `None`: the server ends.
pub type Post = Option<OwnedFd>;

/// Accepts connections and posts each to the thread that has the fewest.
#[derive(Debug)]
pub struct Acceptor {
    pub listener: OwnedFd,
    /// By thread.
    pub threads: Vec<UnboundedSender<Post>>,
}

/// Serves until the server is stopped.
pub fn run(
    shared: Arc<Shared>,
    number: usize,
    posts: UnboundedReceiver<Post>,
    acceptor: Option<Acceptor>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    LocalSet::new().block_on(&runtime, serve(shared, number, posts, acceptor))
}

async fn serve(
    shared: Arc<Shared>,
    number: usize,
    mut posts: UnboundedReceiver<Post>,
    acceptor: Option<Acceptor>,
) -> io::Result<()> {
    let thread = Rc::new(Thread::new(shared, number)?);
    let timers = Rc::clone(&thread.timers);
    spawn_local(async move { timers.run().await });
    if let Some(acceptor) = acceptor {
        let listener = pollable(acceptor.listener)?;
        let thread = Rc::clone(&thread);
        spawn_local(async move { accept(&thread, &listener, &acceptor.threads).await });
    }
    while let Some(Some(socket)) = posts.recv().await {
        spawn_local(lifetime::serve(Rc::clone(&thread), socket));
    }
    Ok(())
}

async fn accept(
    thread: &Thread,
    listener: &TcpStream,
    threads: &[UnboundedSender<Post>],
) -> io::Result<()> {
    let mut last = 0;
    loop {
        listener.readable().await?;
        let accepted = listener.try_io(Interest::READABLE, || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            Ok(accept_with(listener, flags)?)
        });
        match accepted {
            Ok(socket) => {
                last = next_thread(&thread.shared.counters, last);
                let counters = &thread.shared.counters[last];
                counters.connections.add(1);
                counters.connections_open.add(1);
                // A thread that is gone has said so.
                let _ = threads[last].send(Some(socket));
            }
            Err(error) if PASSING.contains(&error.kind()) => {}
            Err(_) => {
                thread.counters.accept_errors.add(1);
                let timers = &thread.timers;
                let due_ns = thread.shared.clock.now_ns() + ACCEPT_PAUSE_NS;
                timers.until(due_ns).await;
            }
        }
    }
}

/// The thread that gets the next connection after `last`: the one with the fewest open ones, the
/// next one after `last` among equals. With `SO_REUSEPORT` a hash of the addresses would decide, and ten
/// connections over two threads could become eight and two.
fn next_thread<C: AsRef<Counters>>(counters: &[C], last: usize) -> usize {
    let threads = counters.len();
    (1..=threads)
        .map(|step| (last + step) % threads)
        .min_by_key(|thread| counters[*thread].as_ref().connections_open.get())
        .unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_evenly() {
        let counters: Vec<Arc<Counters>> = (0..3).map(|_| Arc::default()).collect();
        let mut thread = 0;
        for _ in 0..10 {
            thread = next_thread(&counters, thread);
            counters[thread].connections_open.add(1);
        }
        let mut open: Vec<u64> = counters
            .iter()
            .map(|thread| thread.connections_open.get())
            .collect();
        open.sort_unstable();
        assert_eq!(open, [3, 3, 4]);
        // A thread that lost its connections gets the next ones.
        counters[1].connections_open.subtract(3);
        assert_eq!(
            (next_thread(&counters, 0), next_thread(&counters, 1)),
            (1, 1)
        );
    }
}
