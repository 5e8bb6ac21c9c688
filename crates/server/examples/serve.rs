//! A server without the command line's comforts: `serve DIRECTORY HOST:PORT`.

use std::path::Path;
use std::process::ExitCode;

use frond_db::{Frond, FrondOptions};
use frond_server::{Server, ServerOptions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, listen] = &arguments[..] else {
        eprintln!("usage: serve DIRECTORY HOST:PORT");
        return ExitCode::FAILURE;
    };
    match serve(directory, listen, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    directory: &str,
    listen: &str,
    arguments: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    let frond = Frond::open(Path::new(directory), FrondOptions::default())?;
    let options = ServerOptions {
        listen: listen.to_owned(),
        arguments: arguments.to_vec(),
        data_directory: directory.to_owned(),
        ..ServerOptions::default()
    };
    let server = Server::bind(frond, options)?;
    println!("listening on {}", server.address());
    Ok(server.run_until_signal()?)
}
