//! mongod's options, and what each is here. An option that isn't in the table is unknown to mongod
//! 8.0, or belongs to something that Frond lacks as a whole (sharding, LDAP, Kerberos, encryption
//! of files).

/// The meaning of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// This option of `frond serve`, with the value as it is.
    Pass(&'static str),
    /// The same; it has no value.
    Switch(&'static str),
    /// The same; its value is in gigabytes where Frond's is in megabytes.
    Gigabytes(&'static str),
    /// The same; its value is in megabytes, and Frond's in bytes.
    Megabytes(&'static str),
    /// It has no value, and says what is the case.
    Moot,
    /// Whatever its value is, nothing changes.
    MootValue,
    /// One of these values says what is the case; others are refused, for this reason.
    Only(&'static [&'static str], &'static str),
    /// It is refused, for this reason.
    Refused(&'static str),
    /// It is read by itself.
    Own,
}

use Meaning::{Gigabytes, Megabytes, Moot, MootValue, Only, Own, Pass, Refused, Switch};

const ONE_STORE: &str = "all databases lie in one store";
const NO_SHARDS: &str =
    "there are no shards: frond router serves several servers by one address (docs/router.md)";
const REMOVED: &str = "MongoDB has removed it";

/// All of them, sorted, without dashes.
const OPTIONS: &[(&str, Meaning)] = &[
    ("auditDestination", Only(&["file"], "the audit log goes to a file")),
    ("auditFilter", Pass("--audit-filter")),
    ("auditFormat", Only(&["JSON"], "the audit log is JSON")),
    ("auditPath", Pass("--audit-path")),
    ("auth", Own),
    ("bind_ip", Own),
    ("bind_ip_all", Own),
    ("clusterAuthMode", Only(&["keyFile"], "there is one member")),
    ("config", Own),
    ("configsvr", Refused(NO_SHARDS)),
    ("dbpath", Own),
    ("directoryperdb", Refused(ONE_STORE)),
    ("enableMajorityReadConcern", Only(&["true", "1"], "it can't be turned off")),
    ("filePermissions", Pass("--unix-socket-permissions")),
    ("fork", Own),
    ("help", Own),
    ("ipv6", Own),
    ("journal", Refused(REMOVED)),
    ("keyFile", Own),
    ("logRotate", Pass("--log-rotate")),
    ("logappend", Moot),
    ("logpath", Pass("--log-path")),
    ("maxConns", Pass("--max-connections")),
    ("networkMessageCompressors", Pass("--network-compressors")),
    ("noauth", Own),
    ("nojournal", Refused(REMOVED)),
    ("noscripting", Switch("--noscripting")),
    ("notablescan", Refused("scans of collections can't be forbidden")),
    ("nounixsocket", Moot),
    ("objcheck", Moot),
    ("oplogSize", Megabytes("--changes-bytes")),
    ("pidfilepath", Pass("--pid-file")),
    ("port", Own),
    ("profile", Pass("--profile")),
    ("quiet", Switch("--quiet")),
    ("repair", Refused("a server that starts repairs by itself what it can; see frond fsck")),
    ("replSet", Pass("--replica-set")),
    ("setParameter", Pass("--setParameter")),
    ("shardsvr", Refused(NO_SHARDS)),
    ("shutdown", Own),
    ("slowOpSampleRate", Pass("--slow-sample-rate")),
    ("slowms", Pass("--slow-ms")),
    ("smallfiles", Refused(REMOVED)),
    // The latter, of older versions, promises less than what there is.
    ("storageEngine", Only(&["wiredTiger", "ephemeralForTest"], "there is Frond's own engine")),
    ("syncdelay", Refused("flushes follow the memory that writes take")),
    ("syslog", Refused("the log goes to standard output, or with --logpath to a file")),
    ("timeStampFormat", Only(&["iso8601-utc"], "times are in UTC")),
    ("timeZoneInfo", MootValue),
    (
        "tlsAllowConnectionsWithoutCertificates",
        Switch("--tls-allow-connections-without-certificates"),
    ),
    ("tlsCAFile", Pass("--tls-ca-file")),
    ("tlsCRLFile", Pass("--tls-crl-file")),
    ("tlsCertificateKeyFile", Pass("--tls-certificate-key-file")),
    ("tlsCertificateKeyFilePassword", Pass("--tls-certificate-key-file-password")),
    (
        "tlsDisabledProtocols",
        Only(
            &["none", "TLS1_0", "TLS1_1", "TLS1_0,TLS1_1"],
            "TLS 1.2 and 1.3 are spoken, and no older one",
        ),
    ),
    ("tlsMode", Pass("--tls-mode")),
    ("unixSocketPrefix", Own),
    ("verbose", Own),
    ("version", Own),
    ("wiredTigerCacheSizeGB", Gigabytes("--cache")),
    ("wiredTigerCollectionBlockCompressor", Refused("documents are compressed by zstd")),
    ("wiredTigerDirectoryForIndexes", Refused(ONE_STORE)),
    ("wiredTigerIndexPrefixCompression", Refused("indexes are compressed by zstd")),
    ("wiredTigerJournalCompressor", Refused("the log is compressed by itself")),
];

/// Returns the meaning of an option, by its name without dashes; `None`: mongod doesn't have it,
/// either.
pub fn meaning_of(name: &str) -> Option<Meaning> {
    let position = OPTIONS.binary_search_by_key(&name, |(known, _)| *known).ok()?;
    Some(OPTIONS[position].1)
}

/// The options whose values are taken, and those that change nothing: for the help.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = (&'static str, Meaning)> {
    OPTIONS.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPTIONS.is_sorted_by(|left, right| left.0 < right.0));
        assert_eq!(meaning_of("port"), Some(Own));
        assert_eq!(meaning_of("listen"), None);
    }
}
