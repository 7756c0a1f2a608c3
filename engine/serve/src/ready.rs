//! Waiting for descriptors by tokio.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// Lets tokio say when a descriptor is ready, be it a socket of any family, a timer or an epoll: its
/// only way to that without unsafe code is by this type.
pub fn pollable(descriptor: OwnedFd) -> io::Result<TcpStream> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    TcpStream::from_std(descriptor.into())
}

/// It is not ready until the kernel says so again.
pub fn clear_ready(descriptor: &TcpStream) {
    let not_ready = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
    let _ = descriptor.try_io(Interest::READABLE, not_ready);
}
