//! The program `frond`: all of it is the library, which is compiled beside the crates it rests on.

/// Faster than the system's where many threads take and free small pieces of memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    frond_cli::main()
}
