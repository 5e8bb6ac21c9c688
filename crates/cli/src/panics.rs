//! Panics of libraries that are asked about what others have made.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread's panics are caught, and so aren't printed.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the answer of `ask`; `None` if it panics, which isn't reported. The values it has worked
/// on must not be used any more then.
pub fn caught<T>(ask: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                default_hook(panic);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let answer = catch_unwind(AssertUnwindSafe(ask));
    IS_CAUGHT.set(false);
    answer.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_answer() {
        assert_eq!(caught(|| 1), Some(1));
        assert_eq!(caught(|| -> i32 { panic!("as it must") }), None);
        assert_eq!(caught(|| 2), Some(2));
    }
}
