//! Users of a load on several servers: a connection to each of them, of which the one that the present
//! request needs is the user's own and the others are parked. A load on one server has none of this.

use super::phase::User;
use super::{Action, Context, UserEvent, Users};
use crate::job::Job;
use crate::measure::counters::ErrorKind;
use crate::record::Record;

/// A connection that its user does not need at present.
#[derive(Debug, Clone, Copy, Default)]
struct Parked {
    open: bool,
    address: u16,
    on_connection: u32,
}

/// The connections of a thread's users. That with a server is *server x users + user*.
#[derive(Debug)]
pub(super) struct Servers {
    users: u32,
    /// By user: the server of its own connection.
    present: Vec<u16>,
    /// By number of a connection.
    parked: Vec<Parked>,
}

impl Servers {
    /// `None`: all requests go to one server.
    pub(super) fn new(job: &Job, users: usize) -> Option<Box<Self>> {
        let count = job.servers.len();
        (count > 1).then(|| {
            Box::new(Self {
                users: users as u32,
                present: vec![0; users],
                parked: vec![Parked::default(); users * count],
            })
        })
    }

    fn number(&self, index: u32) -> u32 {
        u32::from(self.present[index as usize]) * self.users + index
    }

    /// Parks a user's connection, and makes that with another server its own.
    fn exchange(&mut self, index: u32, server: u16, user: &mut User) {
        let from = self.number(index) as usize;
        self.parked[from] = Parked {
            open: user.connected,
            address: user.address,
            on_connection: user.on_connection,
        };
        self.present[index as usize] = server;
        let to = self.number(index) as usize;
        let to = std::mem::take(&mut self.parked[to]);
        user.connected = to.open;
        user.address = to.address;
        user.on_connection = to.on_connection;
        user.reader.reset();
    }
}

impl Users {
    /// The number of a user's own connection.
    #[inline]
    pub fn connection(&self, index: u32) -> u32 {
        match &self.servers {
            None => index,
            Some(servers) => servers.number(index),
        }
    }

    /// Whose connection it is; `None`: it is parked.
    #[inline]
    pub fn user_of(&self, connection: u32) -> Option<u32> {
        match &self.servers {
            None => Some(connection),
            Some(servers) => {
                let index = connection % servers.users;
                (servers.number(index) == connection).then_some(index)
            }
        }
    }

    /// The server that a user's own connection goes to.
    pub(super) fn server(&self, index: u32) -> usize {
        let servers = self.servers.as_ref();
        servers.map_or(0, |servers| servers.present[index as usize].into())
    }

    /// Takes up the connection that a user's step needs; an attempt elsewhere is given up.
    #[inline]
    pub(super) fn turn_to_server(&mut self, index: u32, record: &mut Record) {
        if self.servers.is_none() {
            return;
        }
        let server = self.job.steps[usize::from(self.all[index as usize].step)].target;
        if self.server(index) == usize::from(server) {
            return;
        }
        self.give_up_warming(index, record);
        if let Some(servers) = &mut self.servers {
            servers.exchange(index, server, &mut self.all[index as usize]);
        }
    }

    /// Something came on a connection that is parked: whatever it was, the connection is closed.
    #[cold]
    pub(super) fn on_parked(
        &mut self,
        connection: u32,
        event: &UserEvent<'_>,
        cx: &mut Context<'_>,
    ) -> Action {
        let by_client = match event {
            UserEvent::Received(bytes) => {
                cx.record.came(bytes.bytes.len());
                cx.counters().fail(ErrorKind::Protocol);
                true
            }
            UserEvent::Closed { .. } | UserEvent::Broken { .. } => false,
            _ => true,
        };
        let was_open = self.close_parked(connection, by_client, cx.record);
        if was_open && matches!(event, UserEvent::Closed { .. }) {
            cx.record.server_closed_first();
        }
        Action::Stay
    }

    fn close_parked(&mut self, connection: u32, by_client: bool, record: &mut Record) -> bool {
        self.given_up.push(connection);
        let Some(servers) = &mut self.servers else {
            return false;
        };
        let parked = std::mem::take(&mut servers.parked[connection as usize]);
        if parked.open {
            record.closed_connection(by_client);
        }
        parked.open
    }

    /// Closes the connections of a user who goes beside its own: those of its lanes, and parked ones.
    pub fn close_beside(&mut self, user: u32, record: &mut Record) {
        for lane in self.lanes(user) {
            self.close(lane, true, record);
            self.close_all_parked(lane, record);
        }
        self.close_all_parked(user, record);
    }

    fn close_all_parked(&mut self, index: u32, record: &mut Record) {
        let Some(servers) = &self.servers else {
            return;
        };
        let all = (index..servers.parked.len() as u32).step_by(servers.users.max(1) as usize);
        let is_open = |connection: &u32| servers.parked[*connection as usize].open;
        for connection in all.filter(is_open).collect::<Vec<_>>() {
            self.close_parked(connection, true, record);
        }
    }
}
