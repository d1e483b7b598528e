//! Replaces the unwinder in the static release program, which saves about 200 kB.
//!
//! The release program aborts on panic, and `.ci/package` removes its unwind tables, so a backtrace has no frames anyway. The
//! standard library still links an unwinder and a reader of debug information. Both are left out of the program if
//! `_Unwind_Backtrace` never calls its callback and the other functions of the unwinder are defined here. The names and arguments
//! are those of the Itanium C++ ABI: <https://itanium-cxx-abi.github.io/cxx-abi/abi-eh.html>.
#![expect(unsafe_code, reason = "the linker finds these functions by name")]

use std::ffi::{c_int, c_void};

/// The code `_URC_END_OF_STACK`.
const END_OF_STACK: c_int = 5;

/// Returns at once, so a backtrace has no frames.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_callback: *const c_void, _argument: *mut c_void) -> c_int {
    END_OF_STACK
}

/// Defines functions that are called only while a stack is unwound, and which therefore abort.
macro_rules! never_called {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $type),*) $(-> $result)? {
            std::process::abort()
        }
    )*};
}

never_called! {
    _Unwind_FindEnclosingFunction(address: *mut c_void) -> *mut c_void;
    _Unwind_GetCFA(context: *mut c_void) -> usize;
    _Unwind_GetDataRelBase(context: *mut c_void) -> usize;
    _Unwind_GetIP(context: *mut c_void) -> usize;
    _Unwind_GetIPInfo(context: *mut c_void, before_instruction: *mut c_int) -> usize;
    _Unwind_GetLanguageSpecificData(context: *mut c_void) -> *mut c_void;
    _Unwind_GetRegionStart(context: *mut c_void) -> usize;
    _Unwind_GetTextRelBase(context: *mut c_void) -> usize;
    _Unwind_Resume(exception: *mut c_void) -> !;
    _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
    _Unwind_SetIP(context: *mut c_void, value: usize);
}
