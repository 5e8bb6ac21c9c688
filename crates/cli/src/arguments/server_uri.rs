//! Connection strings, as MongoDB's drivers take them, for one server or the members of a set.
//!
//! Of the options those are known that say where the server is, who logs in and how; those by which
//! drivers choose between members, or ask for what is done anyway, are passed over. All others are
//! refused: an option that is silently left out may be one that a secret depends on.

use frond_db::name::percent_decode;
use frond_server::ClientTls;
use frond_server::scram::Mechanism;

use crate::arguments::name_server::NameServers;
use crate::arguments::seed_list;
use crate::backend::{ServerUri, UserLogin};
use crate::failure::Failure;

/// Options without a meaning here: there is one connection, to the primary, that waits for nothing.
const PASSED_OVER: &[&str] = &[
    "appName",
    "directConnection",
    "maxPoolSize",
    "readPreference",
    "retryReads",
    "retryWrites",
    "serverSelectionTimeoutMS",
    "w",
];

/// The options behind the question mark.
#[derive(Default)]
struct Options {
    source: Option<String>,
    mechanism: Option<Mechanism>,
    speaks_tls: Option<bool>,
    tls: ClientTls,
    set: Option<String>,
}

impl ServerUri {
    /// Reads what was given as `--uri`: `HOST:PORT`, the path of a socket, or a connection string;
    /// `password` is that of a user without one.
    ///
    /// # Errors
    /// If it is none, or the name system has no members of a `mongodb+srv://HOST`. The message
    /// doesn't show it: it may hold a password.
    pub fn parse(uri: &str, password: Option<String>) -> Result<ServerUri, Failure> {
        if uri.starts_with(seed_list::SCHEME) {
            let members = seed_list::resolve(uri, &NameServers::of_machine())?;
            return ServerUri::parse(&members, password);
        }
        let rest = uri.strip_prefix("mongodb://").unwrap_or(uri);
        if let Some((scheme, _)) = rest.split_once("://") {
            return Err(Failure::Usage(format!(
                "--uri: {scheme}:// doesn't name a database server: use HOST:PORT or \
                 mongodb://HOST:PORT"
            )));
        }
        // In the form in which a server prints where it listens.
        let rest = rest.strip_prefix("unix:").unwrap_or(rest);
        if rest.starts_with('/') {
            return Ok(ServerUri { address: rest.to_owned(), ..ServerUri::empty() });
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (rest, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match rest.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, rest),
        };
        let mut addresses = hosts.split(',').map(address_of);
        let address = addresses.next().ok_or_else(wrong)??;
        let others = addresses.collect::<Result<Vec<String>, Failure>>()?;
        let options = Options::read(options)?;
        let database = decode(database)?;
        let login = match user {
            None => None,
            Some(user) => Some(login_of(user, password, &database, &options)?),
        };
        let names_files =
            options.tls.authorities_file.is_some() || options.tls.certificate_key_file.is_some();
        let tls = options.speaks_tls.unwrap_or(names_files).then_some(options.tls);
        Ok(ServerUri { address, others, login, tls, database, set: options.set })
    }

    fn empty() -> ServerUri {
        let (address, database) = (String::new(), String::new());
        ServerUri { address, others: Vec::new(), login: None, tls: None, database, set: None }
    }
}

impl Options {
    fn read(text: &str) -> Result<Options, Failure> {
        let mut options = Options::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(wrong)?;
            let value = decode(value)?;
            // Their case doesn't count.
            match name.to_ascii_lowercase().as_str() {
                "authsource" => options.source = Some(value),
                "authmechanism" => {
                    let known = Mechanism::ALL.into_iter().find(|known| known.name() == value);
                    options.mechanism = Some(known.ok_or_else(|| unknown(option))?);
                }
                "tls" | "ssl" if value == "true" => options.speaks_tls = Some(true),
                "tls" | "ssl" if value == "false" => options.speaks_tls = Some(false),
                "tlscafile" => options.tls.authorities_file = Some(value.into()),
                "tlscertificatekeyfile" => options.tls.certificate_key_file = Some(value.into()),
                "replicaset" => options.set = Some(value),
                _ if PASSED_OVER.iter().any(|known| known.eq_ignore_ascii_case(name)) => {}
                _ => return Err(unknown(name)),
            }
        }
        Ok(options)
    }
}

fn login_of(
    user: &str,
    password: Option<String>,
    database: &str,
    options: &Options,
) -> Result<UserLogin, Failure> {
    let (user, given) = match user.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (user, password),
    };
    let password = given.ok_or_else(|| {
        Failure::Usage(
            "--uri: the user's password is missing: FROND_PASSWORD holds it, or the URI".to_owned(),
        )
    })?;
    let source = match &options.source {
        Some(source) => source,
        None if database.is_empty() => "admin",
        None => database,
    };
    let mechanism = options.mechanism.unwrap_or(Mechanism::Sha256);
    Ok(UserLogin { user: decode(user)?, password, database: source.to_owned(), mechanism })
}

/// `HOST:PORT` of a host, whose port may be missing; the path of a socket whose slashes are `%2F`.
fn address_of(host: &str) -> Result<String, Failure> {
    let host = decode(host)?;
    let after_host = host.rsplit_once(']').map_or(&*host, |(_, after)| after);
    if host.is_empty() {
        return Err(wrong());
    }
    if host.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Failure::Usage(format!("--uri: {host} is a port alone: use 127.0.0.1:{host}")));
    }
    match host.starts_with('/') || after_host.contains(':') {
        true => Ok(host),
        false => Ok(format!("{host}:27017")),
    }
}

fn decode(text: &str) -> Result<String, Failure> {
    percent_decode(text).ok_or_else(wrong)
}

fn wrong() -> Failure {
    let expected = "HOST:PORT, or mongodb://USER:PASSWORD@HOST:PORT/DATABASE";
    Failure::Usage(format!("--uri: expected {expected}"))
}

fn unknown(option: &str) -> Failure {
    Failure::Usage(format!("--uri: unknown option {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users() {
        let login = |uri: &str| {
            let server = ServerUri::parse(uri, Some("of the environment".to_owned())).ok()?;
            let login = server.login?;
            let mechanism = login.mechanism.name().trim_start_matches("SCRAM-SHA-").to_owned();
            Some([login.user, login.password, login.database, mechanism].join("/"))
        };
        for (uri, expected) in [
            ("localhost", None),
            ("mongodb://ada:secret@localhost", Some("ada/secret/admin/256")),
            ("mongodb://ada:a%40b%2F@localhost/shop", Some("ada/a@b//shop/256")),
            ("mongodb://ada:x@localhost/shop?authSource=admin", Some("ada/x/admin/256")),
            ("mongodb://ada:x@a,b/shop?authMechanism=SCRAM-SHA-1", Some("ada/x/shop/1")),
            ("ada@localhost:1", Some("ada/of the environment/admin/256")),
            ("mongodb://ada:%zz@localhost", None),
        ] {
            assert_eq!(login(uri).as_deref(), expected, "{uri}");
        }
        assert!(ServerUri::parse("ada@localhost", None).is_err());
    }

    #[test]
    fn addresses() {
        for (uri, expected) in [
            ("127.0.0.1:27018", "127.0.0.1:27018"),
            ("localhost", "localhost:27017"),
            ("[::1]", "[::1]:27017"),
            ("[::1]:5", "[::1]:5"),
            ("mongodb://localhost:1/", "localhost:1"),
            ("mongodb://localhost/shop", "localhost:27017"),
            ("mongodb://ada:secret@localhost", "localhost:27017"),
            ("a:1,b", "a:1 b:27017"),
            ("mongodb://ada:secret@a:1,b:2/shop", "a:1 b:2"),
            ("/tmp/frond.sock", "/tmp/frond.sock"),
            ("mongodb://%2Ftmp%2Ffrond.sock/shop", "/tmp/frond.sock"),
        ] {
            let server = ServerUri::parse(uri, None).expect(uri);
            let mut addresses = vec![server.address];
            addresses.extend(server.others);
            assert_eq!(addresses.join(" "), expected, "{uri}");
        }
        for uri in
            ["", "27018", "a:1,,b:2", "mongodb+srv://a", "a/?", "a/b?tlsInsecure=true", "a/b?x"]
        {
            assert_eq!(ServerUri::parse(uri, None).is_err(), uri != "a/?", "{uri}");
        }
    }

    #[test]
    fn tls() {
        for (options, expected) in [
            ("", None),
            ("tls=true", Some(None)),
            ("ssl=true&retryWrites=true&w=majority", Some(None)),
            ("tlsCAFile=%2Fetc%2Fca.pem", Some(Some("/etc/ca.pem"))),
            ("tlsCAFile=ca.pem&tls=false", None),
        ] {
            let server = ServerUri::parse(&format!("mongodb://a/b?{options}"), None).unwrap();
            let file = server.tls.map(|tls| tls.authorities_file);
            let expected = expected.map(|file| file.map(std::path::PathBuf::from));
            assert_eq!(file, expected, "{options}");
        }
    }
}
