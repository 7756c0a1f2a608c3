//! Opens a LuaJIT interpreter with all of its libraries, as scripts of users expect it, and ends
//! what runs in it when another thread asks for it. It knows nothing of what scripts do with it.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mlua::{Error, Lua, ffi};

/// What the error of a trapped interpreter ends with, after the place in the script.
pub const TRAPPED: &str = ": trapped";

/// An interpreter with every library, `ffi` and `debug` among them.
pub fn open() -> Result<Lua, Error> {
    // SAFETY: the script is the user's own program and runs with the user's rights, as it does in
    // the tool that it was written for; what it does by `ffi` or `debug` is up to it. The
    // interpreter itself is used through its safe interface only.
    let lua = unsafe { Lua::unsafe_new() };
    if !cfg!(compiled_code_checks_hooks) {
        // Compiled loops would never come to the hook that ends them.
        lua.load("jit.off()").set_name("=engine").exec()?;
    }
    Ok(lua)
}

thread_local! {
    /// The trap of the interpreter in which this thread is; null outside of any.
    static INSIDE: Cell<*const Trap> = const { Cell::new(ptr::null()) };
}

/// Wakes a thread for its trap; without a handler it is ignored.
const SIGNAL: libc::c_int = libc::SIGURG;

/// Ends what runs in an interpreter when another thread asks for it: the next instruction is an
/// error that no `pcall` outlasts, until it is let go. The hook is set by the thread that is in the
/// interpreter, in the handler of a signal, as LuaJIT's own command line does it; a call of the
/// system that waits there comes back.
#[derive(Debug)]
pub struct Trap {
    state: *mut ffi::lua_State,
    /// The thread that is, or was last, in the interpreter.
    thread: AtomicU64,
    asked: AtomicBool,
    /// Keeps the state alive.
    _interpreter: Lua,
}

// SAFETY: the state is used only by the thread that is in the interpreter, one at a time (watch.rs),
// and lives as long as the trap; other threads touch the atomics alone.
unsafe impl Send for Trap {}
// SAFETY: as above.
unsafe impl Sync for Trap {}

impl Trap {
    pub fn of(lua: &Lua) -> Result<Self, Error> {
        let mut state = ptr::null_mut();
        // SAFETY: the closure only notes the pointer and leaves the stack as it is.
        unsafe { lua.exec_raw::<()>((), |given| state = given)? };
        // SAFETY: all zeros are an action without flags and an empty set of signals; `on_signal` does
        // what a handler may do.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(SIGNAL, &raw const action, ptr::null_mut())
        };
        if installed != 0 {
            return Err(Error::external(std::io::Error::last_os_error()));
        }
        Ok(Self {
            state,
            thread: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            _interpreter: lua.clone(),
        })
    }

    /// By the thread that goes into the interpreter, before anyone may set the trap; it works until
    /// what is returned is dropped.
    pub fn enter(&self) -> Inside {
        // SAFETY: always works.
        let thread = unsafe { libc::pthread_self() };
        self.thread.store(thread, Ordering::Relaxed);
        Inside(INSIDE.replace(self))
    }

    /// By another thread, while the one that has entered cannot end.
    pub fn set(&self) {
        self.asked.store(true, Ordering::Release);
        // SAFETY: the thread is alive: it waits to leave until this is done (watch.rs).
        unsafe { libc::pthread_kill(self.thread.load(Ordering::Relaxed), SIGNAL) };
    }

    /// By the thread that uses the interpreter, when nothing runs in it.
    pub fn let_go(&self) {
        self.asked.store(false, Ordering::Release);
        // SAFETY: see the struct.
        unsafe { ffi::lua_sethook(self.state, None, 0, 0) };
    }
}

/// A thread is in an interpreter, and was before in that of this trap.
pub struct Inside(*const Trap);

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: a trap outlives the time that a thread is inside, and this is that thread; LuaJIT allows
    // the hook to be set at any instruction (lj_dispatch.c: "can be called asynchronously").
    unsafe {
        if let Some(trap) = INSIDE.get().as_ref()
            && trap.asked.load(Ordering::Acquire)
        {
            ffi::lua_sethook(trap.state, Some(end), ffi::LUA_MASKCOUNT, 1);
        }
    }
}

/// Raises an error that names the place.
unsafe extern "C-unwind" fn end(state: *mut ffi::lua_State, about: *mut ffi::lua_Debug) {
    // SAFETY: called by LuaJIT as a hook, with its state and a record of the running function; what
    // is asked for (S, l) is filled in, and `source` ends with a zero. Nothing that has to be
    // dropped is alive when `lua_error` leaves by a jump.
    unsafe {
        ffi::lua_getinfo(state, c"Sl".as_ptr(), about);
        let source = CStr::from_ptr((*about).source).to_bytes();
        let name = source
            .strip_prefix(b"@")
            .or_else(|| source.strip_prefix(b"="))
            .unwrap_or(b"script");
        ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
        ffi::lua_pushlstring_(state, c":".as_ptr(), 1);
        ffi::lua_pushinteger(state, (*about).currentline as ffi::lua_Integer);
        ffi::lua_pushlstring_(state, TRAPPED.as_ptr().cast(), TRAPPED.len());
        ffi::lua_concat(state, 4);
        ffi::lua_error(state)
    }
}
