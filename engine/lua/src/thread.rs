//! The objects that scripts hold: a thread (its interpreter seen from another one) and an address.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mlua::{AnyUserData, Error, Lua, LuaString, MetaMethod, UserData, UserDataFields};
use mlua::{UserDataMethods, Value, WeakLua};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A table nested deeper holds itself.
const MAX_NESTED: usize = 100;

/// The names of ports.
const SERVICES: &str = "/etc/services";

/// What a script has decided about one of its threads.
#[derive(Debug, Default)]
pub struct ThreadState {
    stopped: AtomicBool,
    address: Mutex<Option<SocketAddr>>,
}

impl ThreadState {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn set_address(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    pub fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A resolved address.
#[derive(Debug, Clone, Copy)]
pub struct AddressObject(pub SocketAddr);

impl UserData for AddressObject {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(this.0.to_string()));
    }
}

/// A thread of the script, as `setup` is given it and `wrk.thread` holds it.
pub struct ThreadObject {
    pub lua: WeakLua,
    pub state: Arc<ThreadState>,
    /// Where it connects to as long as the script says nothing else.
    pub usual: Option<SocketAddr>,
}

impl ThreadObject {
    fn interpreter(&self) -> Result<Lua, Error> {
        self.lua
            .try_upgrade()
            .ok_or_else(|| Error::runtime("the thread has ended"))
    }
}

impl UserData for ThreadObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |lua, this| {
            this.state
                .address()
                .or(this.usual)
                .map(|address| lua.create_userdata(AddressObject(address)))
                .transpose()
        });
        fields.add_field_method_set("addr", |_, this, address: AnyUserData| {
            this.state.set_address(address.borrow::<AddressObject>()?.0);
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: LuaString| {
            let theirs = this.interpreter()?;
            let name = theirs.create_string(&*name.as_bytes())?;
            carry(theirs.globals().get(name)?, lua, 0)
        });
        methods.add_method("set", |_, this, (name, value): (LuaString, Value)| {
            let theirs = this.interpreter()?;
            let value = carry(value, &theirs, 0)?;
            let name = theirs.create_string(&*name.as_bytes())?;
            theirs.globals().set(name, value)
        });
        methods.add_meta_method(MetaMethod::Index, |lua, _, key: Value| unknown(lua, key));
        methods.add_method("stop", |_, this, ()| {
            this.state.stop();
            Ok(())
        });
    }
}

/// What wrk's objects give for a key that they do not know: its name.
pub fn unknown(lua: &Lua, key: Value) -> Result<Option<LuaString>, Error> {
    lua.coerce_string(key)
}

/// The same value in another interpreter.
fn carry(value: Value, to: &Lua, depth: usize) -> Result<Value, Error> {
    if depth > MAX_NESTED {
        return Err(Error::runtime(
            "a table that holds itself cannot go from one thread to another",
        ));
    }
    match value {
        Value::Nil => Ok(Value::Nil),
        Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => Ok(value),
        Value::String(text) => Ok(Value::String(to.create_string(&*text.as_bytes())?)),
        Value::Table(table) => {
            let copy = to.create_table()?;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                copy.raw_set(carry(key, to, depth + 1)?, carry(value, to, depth + 1)?)?;
            }
            Ok(Value::Table(copy))
        }
        other => Err(Error::runtime(format!(
            "a {} cannot go from one thread to another; expected nil, a boolean, a number, a string or a table",
            other.type_name()
        ))),
    }
}

/// `wrk.lookup(host, service)`: every address of the host; `service` is a port, or the name of one.
pub fn look_up(lua: &Lua, (host, service): (String, String)) -> Result<Value, Error> {
    let port = port_of(&service).ok_or_else(|| {
        Error::runtime(format!(
            "wrk.lookup: the service {service:?} is not known; expected a port, or a name in {SERVICES}, such as http"
        ))
    })?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| Error::runtime(format!("wrk.lookup: {host}:{port}: {error}")))?;
    let table = lua.create_table()?;
    let mut known = Vec::new();
    for address in found {
        if !known.contains(&address) {
            known.push(address);
            table.push(lua.create_userdata(AddressObject(address))?)?;
        }
    }
    Ok(Value::Table(table))
}

/// The port of a service: its number, or its name as this host knows it.
fn port_of(service: &str) -> Option<u16> {
    let known = match service {
        "http" => Some(80),
        "https" => Some(443),
        number => number.parse().ok(),
    };
    known.or_else(|| {
        let listed = std::fs::read_to_string(SERVICES).ok()?;
        listed.lines().find_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let (name, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
            let named = name == service || words.any(|other| other == service);
            named.then(|| port.parse().ok())?
        })
    })
}

/// `wrk.connect(addr)`: whether somebody takes connections there.
pub fn connects(_: &Lua, address: AnyUserData) -> Result<bool, Error> {
    let address = address.borrow::<AddressObject>()?.0;
    Ok(TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok())
}
