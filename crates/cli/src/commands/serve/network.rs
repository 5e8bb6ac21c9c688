//! The arguments by which `frond serve` talks with its clients.

use std::path::PathBuf;

use frond_server::limits::{CONNECTIONS_LIMIT, CONNECTIONS_MAX};
use frond_server::wire::Compressor;
use frond_server::{ConsoleOptions, KeyPassword, TlsMode, TlsOptions, UnixSocketOptions};

use crate::failure::Failure;

/// How the server talks with its clients.
#[derive(clap::Args)]
pub struct NetworkArguments {
    /// Address to listen on; beyond loopback only with --auth. Port 0 takes any free one. May be
    /// repeated: unix:PATH is a Unix socket to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = ADDRESS_DEFAULT)]
    listen: Vec<String>,

    /// Permissions of that socket's file, in octal: users who may write to it may connect
    #[arg(long, value_name = "MODE", default_value = "0700", value_parser = parse_permissions)]
    unix_socket_permissions: u32,

    /// Address of a second listener for operators: /metrics (Prometheus' text format), /live and
    /// /ready. It needs no login, and exposes no data and no clients' names
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics_listen: Option<String>,

    /// Address at which to serve the console, pages for a browser (127.0.0.1:27080, say); beyond
    /// loopback only with --auth and --tls-mode
    #[arg(long, value_name = "HOST:PORT")]
    pub console: Option<String>,

    /// Name by which browsers reach the console, besides loopback names; may be repeated. Requests
    /// that name another host are refused
    #[arg(long, value_name = "HOST", requires = "console")]
    console_host: Vec<String>,

    /// Make the console read only, whichever user logs in
    #[arg(long, requires = "console")]
    console_read_only: bool,

    /// How many connections may be open at once; more are closed as they come
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX as u64,
          value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_LIMIT as u64))]
    max_connections: u64,

    /// How messages may be compressed if a client asks for it, separated by commas: snappy, zstd,
    /// zlib; or disabled
    #[arg(long, value_name = "NAMES", default_value = "snappy,zstd,zlib",
          value_parser = parse_compressors)]
    network_compressors: Compressors,

    /// Whether clients connect with TLS, without it, or either way
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Disabled)]
    tls_mode: Mode,

    /// File with the server's certificate, its chain and its key (PEM)
    #[arg(long, value_name = "FILE")]
    tls_certificate_key_file: Option<PathBuf>,

    /// Password of the key in that file, if it is encrypted. It is better given in the environment
    /// (FROND_TLS_CERTIFICATE_KEY_FILE_PASSWORD) or a file (--config); from the command line it
    /// goes into the environment at once
    #[arg(long, value_name = "PASSWORD", requires = "tls_certificate_key_file")]
    tls_certificate_key_file_password: Option<String>,

    /// File with the authorities (PEM) that must have signed clients' certificates
    #[arg(long, value_name = "FILE", requires = "tls_certificate_key_file")]
    tls_ca_file: Option<PathBuf>,

    /// File with lists of certificates that these authorities have revoked (PEM). Clients'
    /// certificates are refused unless their authority has a list there that is in its time
    #[arg(long, value_name = "FILE", requires = "tls_ca_file")]
    tls_crl_file: Option<PathBuf>,

    /// Let clients connect without a certificate; one that is sent is verified all the same
    #[arg(long, requires = "tls_ca_file")]
    tls_allow_connections_without_certificates: bool,
}

/// MongoDB's modes. A server that has no other members to connect to takes clients alike in
/// `allowTLS` and `preferTLS`.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Mode {
    #[value(name = "disabled")]
    Disabled,
    #[value(name = "allowTLS")]
    Allow,
    #[value(name = "preferTLS")]
    Prefer,
    #[value(name = "requireTLS")]
    Require,
}

/// A list of one argument.
#[derive(Clone, Debug, PartialEq)]
struct Compressors(Vec<Compressor>);

const ADDRESS_DEFAULT: &str = "127.0.0.1:27017";
const UNIX: &str = "unix:";

impl NetworkArguments {
    /// The address to listen on, and by which the server is distinguished from others.
    pub fn address(&self) -> String {
        self.addresses().next().map_or(ADDRESS_DEFAULT, String::as_str).to_owned()
    }

    /// Further addresses to listen on.
    pub fn addresses_beside(&self) -> Vec<String> {
        self.addresses().skip(1).cloned().collect()
    }

    fn addresses(&self) -> impl Iterator<Item = &String> {
        self.listen.iter().filter(|listen| !listen.starts_with(UNIX))
    }

    /// The socket of the Unix domain to listen on.
    ///
    /// # Errors
    /// [`Failure::Usage`] if there are two, or one has no path.
    pub fn unix_socket(&self) -> Result<Option<UnixSocketOptions>, Failure> {
        let mut paths = self.listen.iter().filter_map(|listen| listen.strip_prefix(UNIX));
        let Some(path) = paths.next() else { return Ok(None) };
        if path.is_empty() || paths.next().is_some() {
            return Err(Failure::Usage("--listen takes one unix:PATH".to_owned()));
        }
        let permissions = self.unix_socket_permissions;
        Ok(Some(UnixSocketOptions { path: PathBuf::from(path), permissions }))
    }

    /// Connections at one time.
    pub fn connections_max(&self) -> usize {
        self.max_connections as usize
    }

    /// Returns how to serve the console, if at all.
    pub fn console(&self) -> Option<ConsoleOptions> {
        let (hosts, read_only) = (self.console_host.clone(), self.console_read_only);
        self.console.clone().map(|listen| ConsoleOptions { listen, hosts, read_only })
    }

    /// Whether connections may be by TLS.
    pub fn has_tls(&self) -> bool {
        self.tls_mode != Mode::Disabled
    }

    /// Returns how messages may be compressed.
    pub fn compressors(&self) -> Vec<Compressor> {
        self.network_compressors.0.clone()
    }

    /// Returns how to speak TLS, if at all.
    ///
    /// # Errors
    /// [`Failure::Usage`] if mode and files don't go together.
    pub fn tls(&self) -> Result<Option<TlsOptions>, Failure> {
        let mode = match self.tls_mode {
            Mode::Disabled => match &self.tls_certificate_key_file {
                Some(_) => return Err(Failure::Usage(NEEDS_MODE.to_owned())),
                None => return Ok(None),
            },
            Mode::Allow | Mode::Prefer => TlsMode::Allowed,
            Mode::Require => TlsMode::Required,
        };
        let file = self.tls_certificate_key_file.clone();
        Ok(Some(TlsOptions {
            mode,
            certificate_key_file: file.ok_or_else(|| Failure::Usage(NEEDS_FILE.to_owned()))?,
            key_password: self.tls_certificate_key_file_password.clone().map(KeyPassword::from),
            authorities_file: self.tls_ca_file.clone(),
            certificates_are_optional: self.tls_allow_connections_without_certificates,
            revocations_file: self.tls_crl_file.clone(),
        }))
    }

    /// Returns the options that a shell needs besides the address.
    pub fn shell_options(&self) -> &'static str {
        match self.tls_mode {
            Mode::Require => "--tls ",
            _ => "",
        }
    }
}

const NEEDS_MODE: &str =
    "--tls-certificate-key-file needs --tls-mode: allowTLS, preferTLS or requireTLS";
const NEEDS_FILE: &str = "--tls-mode needs --tls-certificate-key-file";

fn parse_permissions(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "not permissions in octal, such as 0700".to_owned())
}

fn parse_compressors(text: &str) -> Result<Compressors, String> {
    if text == "disabled" {
        return Ok(Compressors(Vec::new()));
    }
    let mut compressors = Vec::new();
    for name in text.split(',') {
        let compressor = Compressor::named(name.trim()).ok_or_else(|| {
            format!("unknown compressor {name:?}: snappy, zstd, zlib or disabled")
        })?;
        if compressors.contains(&compressor) {
            return Err(format!("{} is given twice", compressor.name()));
        }
        compressors.push(compressor);
    }
    Ok(Compressors(compressors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal() {
        for (text, expected) in [
            ("0700", Some(0o700)),
            ("777", Some(0o777)),
            ("0", Some(0)),
            ("0o700", None),
            ("1777", None),
            ("0800", None),
            ("", None),
        ] {
            assert_eq!(parse_permissions(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn compressors_are_read() {
        for (text, expected) in [
            ("snappy,zstd,zlib", Some(Compressor::ALL.to_vec())),
            ("zlib, snappy", Some(vec![Compressor::Zlib, Compressor::Snappy])),
            ("disabled", Some(vec![])),
            ("disabled,zlib", None),
            ("zlib,zlib", None),
            ("lz4", None),
            ("", None),
        ] {
            assert_eq!(parse_compressors(text).ok(), expected.map(Compressors), "{text}");
        }
    }
}
