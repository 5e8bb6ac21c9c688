//! Goal: a source that asks for TLS and a login is followed, and one that no authority vouches for
//! isn't believed.

use std::fs;

use frond_server::scram::Mechanism;
use frond_server::{Client, ClientTls};

use super::load::run;
use crate::serving::Server;
use crate::{Directory, frond};

#[test]
fn a_source_with_tls_and_a_login() {
    let directory = Directory::new();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, both) = (directory.path().join("ca.pem"), directory.path().join("both.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&both, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let tls = "--tls-mode requireTLS --tls-certificate-key-file both.pem";
    let server = Server::start_with(&directory, &format!("--data source --auth {tls}"));
    let tls = ClientTls { authorities_file: Some(certificate), ..ClientTls::default() };
    let mut client = Client::connect_by(&server.address, Some(&tls)).unwrap();
    let user = r#"{"createUser": "ada", "pwd": "se/cret", "roles": ["root"]}"#;
    run(&mut client, "admin", user).unwrap();
    client.log_in_by(Mechanism::Sha256, "admin", "ada", "se/cret").unwrap();
    run(&mut client, "shop", r#"{"insert": "items", "documents": [{"_id": 1}, {"_id": 2}]}"#)
        .unwrap();

    let from = |user: &str, options: &str| {
        let source = format!("mongodb://{user}@{}/shop?authSource=admin{options}", server.address);
        frond(&directory, &format!("follow {source} --data copy --once"))
    };
    let trusted = "&tls=true&tlsCAFile=ca.pem";
    for (user, options, expected) in [
        ("ada:wrong", trusted, "login of ada"),
        ("ada:se%2Fcret", "&tls=true", "certificate"),
        ("ada:se%2Fcret", "", ""),
    ] {
        let ran = from(user, options);
        assert!(ran.code != 0 && ran.err.to_lowercase().contains(expected), "{options}: {ran:?}");
        assert!(!ran.err.contains("cret"), "{ran:?}");
    }
    let out = from("ada:se%2Fcret", trusted).ok();
    assert!(out.contains("copied items: 2 documents"), "{out}");
    assert_eq!(frond(&directory, "export -d shop -c items --data copy").ok().lines().count(), 2);
    server.stop();
}
