//! MariaDB: `mariadb-install-db` once a run, a copy of it each time, `mariadbd` on a port of
//! loopback.
//!
//! The binary log is off, as it is in a fresh installation. InnoDB and RocksDB sync their log at
//! each commit; the cache goes to the engine that is measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, is_root, relay, run_to_end};
use crate::targets::{Places, Settings};

const CONNECTIONS_MAX: u32 = 1_200;
/// Where Debian has the plugin.
const PLUGINS: &str = "/usr/lib/mysql/plugin";
/// What the other engine gets.
const CACHE_MEGABYTES_MIN: u64 = 16;

/// Which of its storage engines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// B+trees.
    InnoDb,
    /// Log-structured merge trees.
    RocksDb,
}

/// Starts it; answers the server and its address.
pub fn start(
    places: &Places,
    settings: &Settings<'_>,
    engine: Engine,
) -> Result<(Server, String), Failure> {
    let program = find_program(places, "mariadb", "mariadbd")?;
    let plugin = Path::new(PLUGINS).join("ha_rocksdb.so");
    if engine == Engine::RocksDb && !plugin.is_file() {
        return Err(Failure::Missing("its RocksDB plugin is not installed".into()));
    }
    let data = settings.directory.join("data");
    if !data.exists() {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(template(places, settings)?).arg(&data);
        run_to_end(copy)?;
    }
    let socket = settings.directory.join("socket");
    let mut serve = Command::new(program);
    serve.arg("--no-defaults").arg(argument("--datadir", &data));
    serve.arg(argument("--socket", &socket));
    let port = free_port()?;
    serve.args(["--bind-address=127.0.0.1", "--skip-name-resolve", &format!("--port={port}")]);
    serve.args(["--skip-log-bin", "--innodb-flush-log-at-trx-commit=1"]);
    serve.arg(format!("--max-connections={CONNECTIONS_MAX}"));
    serve.args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin"]);
    serve.args(["--max-prepared-stmt-count=1000000", "--max-allowed-packet=64M"]);
    serve.args(["--transaction-isolation=REPEATABLE-READ", "--innodb-log-file-size=512M"]);
    let cache = settings.cache_bytes >> 20;
    match engine {
        Engine::InnoDb => {
            serve.arg(format!("--innodb-buffer-pool-size={cache}M"));
        }
        Engine::RocksDb => {
            serve.arg(format!("--innodb-buffer-pool-size={CACHE_MEGABYTES_MIN}M"));
            serve.args(["--plugin-load-add=ha_rocksdb", "--rocksdb-flush-log-at-trx-commit=1"]);
            serve.arg(format!("--rocksdb-block-cache-size={cache}M"));
        }
    }
    if is_root() {
        serve.arg("--user=root");
    }
    let server = Server::start("mariadbd", serve, settings.directory)?;
    let (server, port) = relay::reached(server, port, settings)?;
    Ok((server, format!("mysql://root@127.0.0.1:{port}")))
}

/// The directory of an empty installation, made the first time.
fn template(places: &Places, settings: &Settings<'_>) -> Result<PathBuf, Failure> {
    let base = settings.directory.parent().unwrap_or(settings.directory);
    let template = base.join("mariadb-template");
    if template.is_dir() {
        return Ok(template);
    }
    let program = find_program(places, "mariadb-install-db", "mariadb-install-db")?;
    let making = base.join("mariadb-template-making");
    let mut make = Command::new(program);
    make.arg("--no-defaults").arg(argument("--datadir", &making));
    make.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    make.args(["--innodb-log-file-size=512M"]);
    if is_root() {
        make.arg("--user=root");
    }
    run_to_end(make)?;
    std::fs::rename(&making, &template)?;
    Ok(template)
}

fn argument(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
