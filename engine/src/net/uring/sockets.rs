//! Opens and closes sockets: by operations of the ring, which the kernel carries out in the order in which they
//! were queued, since none of them waits; by calls where the ring would free them late ([`ends_late`]).
//!
//! [`ends_late`]: super::set_up::ends_late

use std::io;
use std::os::fd::AsRawFd;

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{DestinationSlot, Fixed};
use rustix::net::Shutdown;

use super::tags::*;
use super::{ConnId, Uring};
use crate::net::arrival;

/// What the kernel reads of an option is to stay where it is.
static ON: i32 = 1;
static NO_LINGER: libc::linger = libc::linger {
    l_onoff: 1,
    l_linger: 0,
};

fn option<T>(conn: ConnId, level: i32, name: i32, value: &'static T) -> Entry {
    let (value, bytes) = ((&raw const *value).cast(), size_of::<T>() as u32);
    opcode::SetSockOpt::new(Fixed(conn), level as u32, name as u32, value, bytes).build()
}

impl Uring {
    pub(super) fn try_connect(&mut self, conn: ConnId, address: usize) -> io::Result<()> {
        if conn as usize >= self.direct {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let to = self
            .config
            .addresses
            .get(address)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let connect = opcode::Connect::new(Fixed(conn), to.as_ptr(), to.length()).build();
        let stamped = if self.sockets.is_empty() {
            self.queue_socket(conn, address)?
        } else {
            let socket = self.config.socket(conn, to)?;
            self.ring
                .submitter()
                .register_files_update(conn, &[socket.as_raw_fd()])?;
            let stamped = arrival::ask(&self.config, conn, address, &socket);
            self.sockets[conn as usize] = Some(socket);
            stamped
        };
        let slot = &mut self.conns[conn as usize];
        slot.open = true;
        slot.connecting = true;
        slot.stamped = stamped;
        self.push_for(conn, connect.user_data(self.tag(CONNECT, conn)));
        Ok(())
    }

    /// Queues what makes a socket and sets it up, as `Config::socket` does; whether its reads are stamped.
    fn queue_socket(&mut self, conn: ConnId, address: usize) -> io::Result<bool> {
        let to = &self.config.addresses[address];
        let (family, is_unix) = (i32::from(to.family().as_raw()), to.is_unix());
        let source = self.config.source(conn);
        let bind =
            source.map(|of| opcode::Bind::new(Fixed(conn), of.as_ptr(), of.length()).build());
        let stamped = arrival::is_asked(&self.config, conn, address);
        let place =
            DestinationSlot::try_from_slot_target(conn).map_err(|_| io::ErrorKind::InvalidInput)?;
        let socket = opcode::Socket::new(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)
            .file_index(Some(place))
            .build();
        let on = |level, name| option(conn, level, name, &ON);
        // Whatever fails of the first is the attempt to connect; the others only cost ports or stamps.
        let (needed, wished) = (self.tag(CONNECT, conn), CANCEL << 60);
        let resets = self.config.resets && !is_unix;
        let entries = [
            Some((socket, needed)),
            (!is_unix).then(|| (on(libc::IPPROTO_TCP, libc::TCP_NODELAY), needed)),
            resets.then(|| {
                (
                    option(conn, libc::SOL_SOCKET, libc::SO_LINGER, &NO_LINGER),
                    needed,
                )
            }),
            bind.is_some()
                .then(|| (on(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT), wished)),
            bind.map(|bind| (bind, needed)),
            stamped.then(|| (on(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), wished)),
        ];
        for (entry, tag) in entries.into_iter().flatten() {
            if !self.push_for(conn, entry.flags(Flags::SKIP_SUCCESS).user_data(tag)) {
                break;
            }
        }
        Ok(stamped)
    }

    /// Operations under way keep the socket until they end: they are cancelled before.
    pub(super) fn close_socket(&mut self, conn: ConnId) {
        if self.sockets.is_empty() {
            let entry = opcode::Close::new(Fixed(conn))
                .build()
                .flags(Flags::SKIP_SUCCESS)
                .user_data(CANCEL << 60);
            // Kept for later it would close the next socket at this index.
            if self.push(&entry).is_ok() {
                return;
            }
        } else if let Some(socket) = self.sockets[conn as usize].take() {
            // An attempt that is still queued would find the next socket at this index.
            if self.conns[conn as usize].connecting {
                let _ = self.submit();
            }
            // To disconnect sends the RST at once; a Unix socket has none. An end that the other side
            // made needs none either.
            if !self.config.resets || rustix::net::connect_unspec(&socket).is_err() {
                let _ = rustix::net::shutdown(socket, Shutdown::Both);
            }
        }
        // The only failure would be an index out of range, which `try_connect` has excluded.
        let _ = self.ring.submitter().register_files_update(conn, &[-1]);
    }
}
