//! Sessions that a thread may resume: by whom they were begun and with which server, so that how many
//! handshakes are resumed depends on the plan and the server, not on who happened to be served together.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets of one client for one server; a server gives one or two with each handshake.
const OWN_TICKETS: usize = 4;
/// Where all share them, each of as many connections as may be opened at once needs one.
const SHARED_TICKETS: usize = 4096;
/// Clients whose sessions a thread remembers, at a few KiB each: beyond, some do without.
const MAX_CLIENTS: usize = 16 * 1024;

/// The sessions of one thread.
#[derive(Debug)]
pub struct SessionStore {
    /// Who is at work: a client (its number in the upper bits) and an address (in the lower 16). One
    /// thread uses the store; the library asks for what it can be sent to others with.
    at_work: AtomicU64,
    clients: Mutex<Clients>,
    shared: bool,
}

/// Its sessions by address.
type Client = Vec<(u16, Sessions)>;

#[derive(Debug, Default)]
struct Clients {
    /// By number.
    all: Vec<Option<Box<Client>>>,
    count: usize,
    /// The next who makes room.
    hand: usize,
}

/// With one server.
#[derive(Debug, Default)]
struct Sessions {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// The newest is the last.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl SessionStore {
    /// `shared`: all clients are one.
    pub fn new(shared: bool) -> Self {
        Self {
            at_work: AtomicU64::new(0),
            clients: Mutex::default(),
            shared,
        }
    }

    /// From here on the library works for a connection of this client to this address.
    #[inline]
    pub fn works_for(&self, client: usize, address: u16) {
        let client = if self.shared { 0 } else { client as u64 };
        self.at_work
            .store(client << 16 | u64::from(address), Ordering::Relaxed);
    }

    /// This client is another from here on.
    pub fn forget(&self, client: usize) {
        let mut clients = self.clients();
        let known = clients.all.get_mut(client).and_then(Option::take);
        clients.count -= usize::from(known.is_some());
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Sessions) -> T) -> T {
        let at_work = self.at_work.load(Ordering::Relaxed);
        let (client, address) = ((at_work >> 16) as usize, at_work as u16);
        act(self.clients().sessions(client, address))
    }
}

impl Clients {
    fn sessions(&mut self, client: usize, address: u16) -> &mut Sessions {
        if client >= self.all.len() {
            self.all.resize_with(client + 1, || None);
        }
        if self.all[client].is_none() {
            if self.count == MAX_CLIENTS {
                self.make_room();
            }
            self.count += 1;
        }
        let all = self.all[client].get_or_insert_default();
        let known = all.iter().position(|(of, _)| *of == address);
        let place = known.unwrap_or_else(|| {
            all.push((address, Sessions::default()));
            all.len() - 1
        });
        &mut all[place].1
    }

    fn make_room(&mut self) {
        while self.all[self.hand].take().is_none() {
            self.hand = (self.hand + 1) % self.all.len();
        }
        self.count -= 1;
    }
}

impl ClientSessionStore for SessionStore {
    fn set_kx_hint(&self, _name: ServerName<'static>, group: NamedGroup) {
        self.with(|sessions| sessions.group = Some(group));
    }

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|sessions| sessions.group)
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(|sessions| sessions.tls12 = Some(value));
    }

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|sessions| sessions.tls12.clone())
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {
        self.with(|sessions| sessions.tls12 = None);
    }

    fn insert_tls13_ticket(&self, _name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let most = if self.shared {
            SHARED_TICKETS
        } else {
            OWN_TICKETS
        };
        self.with(|sessions| {
            if sessions.tickets.len() == most {
                sessions.tickets.pop_front();
            }
            sessions.tickets.push_back(value);
        });
    }

    fn take_tls13_ticket(&self, _name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|sessions| sessions.tickets.pop_back())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(store: &SessionStore, client: usize, address: u16) -> Option<NamedGroup> {
        store.works_for(client, address);
        store.kx_hint(&ServerName::try_from("h").unwrap())
    }

    fn learn(store: &SessionStore, client: usize, address: u16) {
        store.works_for(client, address);
        store.set_kx_hint(ServerName::try_from("h").unwrap(), NamedGroup::X25519);
    }

    #[test]
    fn what_a_client_has_learnt_is_its_own() {
        let store = SessionStore::new(false);
        learn(&store, 3, 7);
        assert_eq!(hints(&store, 3, 7), Some(NamedGroup::X25519));
        assert_eq!(hints(&store, 3, 8), None);
        assert_eq!(hints(&store, 2, 7), None);
        store.forget(3);
        store.forget(99);
        assert_eq!(hints(&store, 3, 7), None);
        let shared = SessionStore::new(true);
        learn(&shared, 3, 7);
        assert_eq!(hints(&shared, 4, 7), Some(NamedGroup::X25519));
        assert_eq!(hints(&shared, 4, 8), None);
    }

    #[test]
    fn so_many_clients_are_remembered_and_no_more() {
        let store = SessionStore::new(false);
        for client in 0..MAX_CLIENTS + 10 {
            learn(&store, client, 0);
        }
        let known = |client: &usize| {
            let clients = store.clients();
            clients.all.get(*client).is_some_and(Option::is_some)
        };
        assert_eq!((0..MAX_CLIENTS + 10).filter(known).count(), MAX_CLIENTS);
        assert_eq!(store.clients().count, MAX_CLIENTS);
        assert!(!known(&0) && known(&MAX_CLIENTS));
    }
}
