//! `serverStatus.security`: logins by mechanism, and the server's certificate.

use frond_doc::{DocumentBuilder, Value};

use super::activity::long;
use crate::shared::Shared;
use crate::usage::Logins;

/// Appends the section.
pub(super) fn append(answer: &mut DocumentBuilder, server: &Shared) {
    let logins = server.usage.logins();
    answer
        .begin_document("security")
        .begin_document("authentication")
        .append("saslSupportedMechsReceived", long(logins.mechanism_queries()))
        .begin_document("mechanisms");
    for of_mechanism in logins.list() {
        answer.begin_document(of_mechanism.mechanism);
        append_logins(answer, "speculativeAuthenticate", of_mechanism.speculative);
        append_logins(answer, "authenticate", of_mechanism.all);
        answer.end();
    }
    answer.end().end();
    if let Some(tls) = &server.tls {
        let certificate = tls.certificate();
        if let Some(subject) = &certificate.subject {
            answer.append("SSLServerSubjectName", Value::String(subject));
        }
        answer.append(
            "SSLServerHasCertificateAuthority",
            Value::Boolean(certificate.verifies_clients),
        );
        if let Some(ends) = certificate.ends {
            let millis = ends.saturating_mul(1_000);
            answer.append("SSLServerCertificateExpirationDate", Value::DateTime(millis));
        }
    }
    answer.end();
}

fn append_logins(answer: &mut DocumentBuilder, name: &str, logins: Logins) {
    answer
        .begin_document(name)
        .append("received", long(logins.received))
        .append("successful", long(logins.successful))
        .end();
}
