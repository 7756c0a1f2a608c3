//! Opens a LuaJIT interpreter with all of its libraries, as scripts of users expect it, and ends
//! what runs in it from another thread. It knows nothing of what scripts do with it.

use std::ffi::CStr;

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

/// Ends what runs in an interpreter, from any thread: its next instruction is an error that no
/// `pcall` outlasts, until it is let go.
#[derive(Debug)]
pub struct Trap {
    state: *mut ffi::lua_State,
    /// Keeps the state alive.
    _interpreter: Lua,
}

// SAFETY: of the state only the hook is set and taken away through this pointer, which LuaJIT
// allows from other threads and from signal handlers (lj_dispatch.c: "can be called
// asynchronously"); the interpreter lives as long as the trap.
unsafe impl Send for Trap {}
// SAFETY: as above; calls from several threads are kept apart by the one who holds the trap
// (watch.rs).
unsafe impl Sync for Trap {}

impl Trap {
    pub fn of(lua: &Lua) -> Result<Self, Error> {
        let mut state = std::ptr::null_mut();
        // SAFETY: the closure only notes the pointer and leaves the stack as it is.
        unsafe { lua.exec_raw::<()>((), |given| state = given)? };
        Ok(Self {
            state,
            _interpreter: lua.clone(),
        })
    }

    pub fn set(&self) {
        // SAFETY: see the struct. The hook is called by the thread that runs the interpreter, after
        // its next instruction.
        unsafe { ffi::lua_sethook(self.state, Some(end), ffi::LUA_MASKCOUNT, 1) };
    }

    /// By the thread that uses the interpreter, when nothing runs in it.
    pub fn let_go(&self) {
        // SAFETY: see the struct.
        unsafe { ffi::lua_sethook(self.state, None, 0, 0) };
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
