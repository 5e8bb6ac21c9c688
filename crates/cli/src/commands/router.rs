//! `frond router`: one address for several servers and replica sets, until SIGINT or SIGTERM.

use std::io::Write;
use std::path::PathBuf;

use frond_server::limits::{CONNECTIONS_LIMIT, CONNECTIONS_MAX};
use frond_server::router::login::Identity;
use frond_server::{ClientTls, ClusterKey, RouterOptions, TlsMode, TlsOptions};

use crate::commands::serve::process::allow_open_files;
use crate::failure::Failure;
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond router --default mongodb://127.0.0.1:27018
  frond router --default 'mongodb://a:27018,b:27018/?replicaSet=rs0' --listen 127.0.0.1:27017
  frond router --default 'mongodb://a:27018/?tls=true' --line-ca-file ca.pem \\
      --router-key router.key --listen 0.0.0.0:27017

A line is a server or a replica set. Databases lie on the default line unless its database config \
says otherwise, and a branch may lie on another line than its database:
  db.getSiblingDB('config').lines.insertOne({_id: 'eu', uri: 'mongodb://c:27018'})
  db.getSiblingDB('config').databases.insertOne({_id: 'shop', line: 'eu'})
  db.getSiblingDB('config').databases.insertOne({_id: 'shop@sale', line: 'eu'})
Routers read these collections every second. Place a database before anything is written to it. One \
that has data is moved, while it is used:
  db.adminCommand({movePrimary: 'shop', to: 'eu'})";

/// Serve several servers and replica sets through one address
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Router {
    /// Line that has all databases that aren't placed on another, and the table of lines:
    /// mongodb://HOST:PORT,.../?replicaSet=NAME&tls=true
    #[arg(long, value_name = "URI")]
    default: String,

    /// Address to listen on; beyond loopback only with --router-key. Port 0 takes any free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:27017")]
    listen: String,

    /// File with the key that the lines' servers have, too (frond serve --router-key): clients log
    /// in, and each line's servers decide what a user may do there. At least 32 characters,
    /// readable by its owner only
    #[arg(long, value_name = "FILE")]
    router_key: Option<PathBuf>,

    /// User as whom the router reads the table of lines, with --router-key: DATABASE.NAME, with the
    /// role clusterMonitor
    #[arg(long, value_name = "USER", default_value = "admin.router", value_parser = parse_user)]
    router_user: Identity,

    /// Listen beyond loopback without --router-key: any client that reaches the address can do
    /// whatever lines without --auth allow
    #[arg(long, conflicts_with = "router_key")]
    insecure_no_auth: bool,

    /// File with the router's certificate, its chain and its key (PEM): clients must then connect
    /// with TLS
    #[arg(long, value_name = "FILE")]
    tls_certificate_key_file: Option<PathBuf>,

    /// File with the authorities (PEM) that must have signed clients' certificates
    #[arg(long, value_name = "FILE", requires = "tls_certificate_key_file")]
    tls_ca_file: Option<PathBuf>,

    /// File with the authorities (PEM) that must have signed the certificates of lines with
    /// tls=true; by default those that the system trusts
    #[arg(long, value_name = "FILE")]
    line_ca_file: Option<PathBuf>,

    /// File with a certificate and its key (PEM) to present to such lines
    #[arg(long, value_name = "FILE")]
    line_certificate_key_file: Option<PathBuf>,

    /// How many connections may be open at once; more are closed as they come
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX as u64,
          value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_LIMIT as u64))]
    max_connections: u64,
}

impl Router {
    /// Runs until a signal.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the address, the key or a certificate can't be used.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let key = self.router_key.as_deref().map(ClusterKey::read).transpose();
        let tls = self.tls_certificate_key_file.clone().map(|file| TlsOptions {
            mode: TlsMode::Required,
            certificate_key_file: file,
            key_password: None,
            authorities_file: self.tls_ca_file.clone(),
            certificates_are_optional: false,
            revocations_file: None,
        });
        let options = RouterOptions {
            listen: self.listen.clone(),
            default: self.default.clone(),
            key: key.map_err(Failure::failed)?,
            user: self.router_user.clone(),
            insecure: self.insecure_no_auth,
            tls,
            line_tls: ClientTls {
                authorities_file: self.line_ca_file.clone(),
                certificate_key_file: self.line_certificate_key_file.clone(),
            },
            connections_max: allow_open_files(self.max_connections as usize),
        };
        let failed = |error: frond_server::RouterError| Failure::failed(error.to_string());
        let router = frond_server::Router::bind(options).map_err(failed)?;
        // Served all the same where its output has no reader, or no room.
        let _ = self.print(terminal, &router);
        terminal.finish_or_forget();
        router.run_until_signal().map_err(failed)
    }

    fn print(&self, terminal: &mut Terminal, router: &frond_server::Router) -> Result<(), Failure> {
        let address = router.address();
        let by_tls = if self.tls_certificate_key_file.is_some() { "--tls " } else { "" };
        let shell = format!("mongosh {by_tls}mongodb://{address}/");
        writeln!(terminal, "frond {} routes to {}", env!("CARGO_PKG_VERSION"), self.default)?;
        writeln!(terminal, "  listening on  {}", terminal.paint(Style::Strong, address))?;
        writeln!(terminal, "  connect with  {}", terminal.paint(Style::Accent, shell))?;
        Ok(writeln!(terminal, "  stop with     Ctrl-C")?)
    }
}

fn parse_user(text: &str) -> Result<Identity, String> {
    Identity::parse(text).ok_or_else(|| "not a user, such as admin.router".to_owned())
}
