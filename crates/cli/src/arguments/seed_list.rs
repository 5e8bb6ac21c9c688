//! `mongodb+srv://HOST/...`: the members of a set, as the name system lists them.
//!
//! 1. The services `_mongodb._tcp.HOST` are the members. Each lies in HOST's own domain: a server
//!    that answers for one name mustn't lead passwords elsewhere.
//! 2. A text of HOST may have `authSource` and `replicaSet`; the string's own go before them.
//! 3. TLS is spoken, unless the string says otherwise.

use crate::arguments::name_server::NameServers;
use crate::failure::Failure;

/// The beginning of such a string.
pub const SCHEME: &str = "mongodb+srv://";
const SERVICE: &str = "_mongodb._tcp";
/// The least number of parts that a host has, the first of which is not its domain's.
const LABELS_MIN: usize = 3;
/// The options that a text may set, without their case.
const IN_TEXTS: &[&str] = &["authsource", "replicaset"];

/// The same connection string with the members' addresses.
///
/// # Errors
/// [`Failure::Usage`] if it names a port, several hosts, or none in a domain; [`Failure::Failed`]
/// if the name system doesn't know it, or gives an answer that isn't allowed. No message has the
/// user or the password.
pub fn resolve(uri: &str, names: &NameServers) -> Result<String, Failure> {
    let rest = uri.strip_prefix(SCHEME).unwrap_or(uri);
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (rest, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), rest),
    };
    let labels = host.split('.').count();
    if labels < LABELS_MIN || host.contains([',', ':', '%']) {
        let expected = "mongodb+srv://HOST with one host, of three parts at least, and no port";
        return Err(Failure::Usage(format!("--uri: expected {expected}")));
    }
    let failed = |error: std::io::Error| Failure::failed(format!("{host}: {error}"));
    let members = names.services(&format!("{SERVICE}.{host}")).map_err(failed)?;
    if members.is_empty() {
        return Err(Failure::failed(format!("{host}: DNS lists no members for it")));
    }
    let mut addresses = Vec::with_capacity(members.len());
    for (name, port) in &members {
        if !is_beside(name, host) {
            let what = format!("{host}: the member {name} is in another domain");
            return Err(Failure::failed(what));
        }
        addresses.push(format!("{name}:{port}"));
    }
    let text = text_of(&names.texts(host).map_err(failed)?, host)?;
    let options: Vec<&str> =
        ["tls=true", &text, options].into_iter().filter(|it| !it.is_empty()).collect();
    Ok(format!("mongodb://{user}{}/{database}?{}", addresses.join(","), options.join("&")))
}

/// Whether a member lies in the domain of a host: that is the host without its first part.
fn is_beside(member: &str, host: &str) -> bool {
    let domain = host.split_once('.').map_or(host, |(_, domain)| domain);
    let (member, domain) = (member.to_ascii_lowercase(), domain.to_ascii_lowercase());
    member.strip_suffix(&domain).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
}

fn text_of(texts: &[String], host: &str) -> Result<String, Failure> {
    let [text] = texts else {
        return match texts.is_empty() {
            true => Ok(String::new()),
            false => Err(Failure::failed(format!("{host}: DNS has several TXT records for it"))),
        };
    };
    for option in text.split('&') {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        if !IN_TEXTS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(Failure::failed(format!("{host}: its TXT record has an unknown option")));
        }
    }
    Ok(text.clone())
}

#[cfg(test)]
mod tests;
