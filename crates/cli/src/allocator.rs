//! Settings of the allocator. It asks the environment when the process begins, so an operator who
//! wants something else begins again.

/// Milliseconds after which what was freed goes back to the system. With the usual thousand, the
/// import of a document of 1 GB took 59 to 72 MB; with ten it takes 46 to 48, and no longer.
#[cfg(unix)]
const DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10");

/// Begins the process again as one that gives memory back soon, unless the environment says when.
/// To be called before anything is read or opened.
pub fn give_back_soon() {
    #[cfg(unix)]
    if std::env::var_os(DELAY.0).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        use std::os::unix::process::CommandExt;
        let mut arguments = std::env::args_os();
        let mut again = std::process::Command::new(program);
        // A link that is called mongod takes mongod's arguments.
        again.arg0(arguments.next().unwrap_or_default());
        // It comes back only where that can't be done, which costs memory and nothing else.
        let _ = again.args(arguments).env(DELAY.0, DELAY.1).exec();
    }
}
