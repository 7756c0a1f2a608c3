//! Opens a LuaJIT interpreter with all of its libraries, as scripts of users expect it. It knows nothing of what they do with it.

use mlua::Lua;

/// An interpreter with every library, `ffi` and `debug` among them.
pub fn open() -> Lua {
    // SAFETY: the script is the user's own program and runs with the user's rights, as it does in the tool that it was written for;
    // what it does by `ffi` or `debug` is up to it. The interpreter itself is used through its safe interface only.
    unsafe { Lua::unsafe_new() }
}
