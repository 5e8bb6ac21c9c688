//! An account of Azure's storage, by the variables that Azure's own tools read.
//!
//! | | |
//! |---|---|
//! | `AZURE_STORAGE_CONNECTION_STRING` | all of it; `..._ACCOUNT` and `..._KEY` are ignored then |
//! | `AZURE_STORAGE_ACCOUNT`, `..._ACCOUNT_NAME` | its name |
//! | `AZURE_STORAGE_SAS_TOKEN` | a signature, which is used rather than a key |
//! | `AZURE_STORAGE_KEY`, `..._ACCOUNT_KEY` | its key |
//! | `AZURE_STORAGE_ENDPOINT` | another address than `https://ACCOUNT.blob.core.windows.net` |
//!
//! Without any of the last three, `AZURE_CLIENT_ID` and its like name a user or service of Entra,
//! and at last the machine that Azure rents out is asked.

use frond_db::Error;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";
/// Where accounts lie that name no other domain.
const DOMAIN: &str = "core.windows.net";

/// Settings of an account, by their keys; a later one counts.
type Settings = Vec<(AzureConfigKey, String)>;

/// Returns how to reach the account that `variables` name; an empty one counts as none.
///
/// # Errors
/// `BadValue` if they name none, or one of them can't be read.
pub(crate) fn azure_builder(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<MicrosoftAzureBuilder, Error> {
    let mut settings = settings(variables)?;
    let value_of = |key: AzureConfigKey| {
        settings.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    };
    let is_emulated = value_of(AzureConfigKey::UseEmulator).is_some();
    if value_of(AzureConfigKey::AccountName).is_none() && !is_emulated {
        let what = "no account: set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or \
                    AZURE_STORAGE_CONNECTION_STRING";
        return Err(Error::bad_value(what));
    }
    // A store given without TLS is meant so.
    let endpoint = value_of(AzureConfigKey::Endpoint);
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    if value_of(AzureConfigKey::SasKey).is_some() {
        settings.retain(|(key, _)| *key != AzureConfigKey::AccessKey);
    }
    let builder = MicrosoftAzureBuilder::new().with_allow_http(is_plain);
    Ok(settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value)))
}

fn settings(variables: impl Iterator<Item = (String, String)>) -> Result<Settings, Error> {
    let (mut settings, mut connection) = (Settings::new(), None);
    for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
        match name.as_str() {
            CONNECTION_STRING => connection = Some(connection_settings(&value)?),
            "AZURE_STORAGE_ACCOUNT" => settings.push((AzureConfigKey::AccountName, value)),
            "AZURE_STORAGE_KEY" => settings.push((AzureConfigKey::AccessKey, value)),
            name if name.starts_with("AZURE_") => {
                if let Ok(key) = name.to_ascii_lowercase().parse::<AzureConfigKey>() {
                    settings.push((key, value));
                }
            }
            _ => {}
        }
    }
    if let Some(connection) = connection {
        let replaced = [AzureConfigKey::AccountName, AzureConfigKey::AccessKey];
        settings.retain(|(key, _)| !replaced.contains(key));
        settings.extend(connection);
    }
    Ok(settings)
}

/// Reads `NAME=VALUE;NAME=VALUE`. Names of other services' settings say nothing here.
fn connection_settings(text: &str) -> Result<Settings, Error> {
    let wrong = |what: &str| Error::bad_value(format!("{CONNECTION_STRING}: {what}"));
    let mut settings = Settings::new();
    let (mut protocol, mut domain, mut account, mut endpoint) = ("https", DOMAIN, None, None);
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            // A part may be a secret: it isn't shown.
            wrong("NAME=VALUE;NAME=VALUE is expected, as AccountName=...;AccountKey=...")
        })?;
        match name.to_ascii_lowercase().as_str() {
            "defaultendpointsprotocol" => protocol = value,
            "endpointsuffix" => domain = value,
            "accountname" => account = Some(value.to_owned()),
            "accountkey" => settings.push((AzureConfigKey::AccessKey, value.to_owned())),
            "sharedaccesssignature" => settings.push((AzureConfigKey::SasKey, value.to_owned())),
            "blobendpoint" => endpoint = Some(value.trim_end_matches('/').to_owned()),
            "usedevelopmentstorage" if value.eq_ignore_ascii_case("true") => {
                settings.push((AzureConfigKey::UseEmulator, "true".to_owned()));
                return Ok(settings);
            }
            _ => {}
        }
    }
    let account = match (account, &endpoint) {
        (Some(account), _) => account,
        // A signature doesn't need the name; the address begins with it.
        (None, Some(endpoint)) => {
            let host = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, host)| host);
            host.split(['.', '/', ':']).next().unwrap_or_default().to_owned()
        }
        (None, None) => return Err(wrong("AccountName or BlobEndpoint is expected")),
    };
    let endpoint = endpoint.unwrap_or_else(|| format!("{protocol}://{account}.blob.{domain}"));
    settings.push((AzureConfigKey::AccountName, account));
    settings.push((AzureConfigKey::Endpoint, endpoint));
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is set by `variables`: account, key, signature, endpoint.
    fn check(variables: &[(&str, &str)], expected: Result<[Option<&str>; 4], &str>) {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let keys = [
            AzureConfigKey::AccountName,
            AzureConfigKey::AccessKey,
            AzureConfigKey::SasKey,
            AzureConfigKey::Endpoint,
        ];
        let found =
            azure_builder(owned).map(|builder| keys.map(|key| builder.get_config_value(&key)));
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, expected.map(|it| it.map(str::to_owned)), "{variables:?}");
            }
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error:?}"),
            (found, expected) => panic!("{variables:?}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn an_account_is_found_by_the_usual_names() {
        let pair = [("AZURE_STORAGE_ACCOUNT", "shop"), ("AZURE_STORAGE_KEY", "a2V5")];
        check(&pair, Ok([Some("shop"), Some("a2V5"), None, None]));
        let long = [("AZURE_STORAGE_ACCOUNT_NAME", "shop"), ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")];
        check(&long, Ok([Some("shop"), Some("a2V5"), None, None]));
        let signed = [pair[0], pair[1], ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=x")];
        check(&signed, Ok([Some("shop"), None, Some("sv=1&sig=x"), None]));
        check(&[], Err("AZURE_STORAGE_ACCOUNT"));
        check(&[("AZURE_STORAGE_ACCOUNT", "")], Err("AZURE_STORAGE_ACCOUNT"));
    }

    #[test]
    fn a_connection_string_says_it_all() {
        let connection = |text| ("AZURE_STORAGE_CONNECTION_STRING", text);
        let other = [("AZURE_STORAGE_ACCOUNT", "other"), ("AZURE_STORAGE_KEY", "b3RoZXI=")];
        let usual = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=a2V5Pw==;\
                     EndpointSuffix=core.example.net";
        let there = Some("https://shop.blob.core.example.net");
        check(
            &[other[0], connection(usual), other[1]],
            Ok([Some("shop"), Some("a2V5Pw=="), None, there]),
        );
        let near = "accountname=dev;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/dev/;\
                    QueueEndpoint=http://127.0.0.1:2/dev;";
        let endpoint = Some("http://127.0.0.1:1/dev");
        check(&[connection(near)], Ok([Some("dev"), Some("a2V5"), None, endpoint]));
        let signed = "BlobEndpoint=https://shop.blob.core.windows.net;\
                      SharedAccessSignature=sv=1&sig=x%3D";
        let there = Some("https://shop.blob.core.windows.net");
        check(&[connection(signed)], Ok([Some("shop"), None, Some("sv=1&sig=x%3D"), there]));
        check(&[connection("UseDevelopmentStorage=true")], Ok([None, None, None, None]));
        check(&[connection("secret")], Err("NAME=VALUE"));
        check(&[connection("AccountKey=a2V5")], Err("AccountName or BlobEndpoint"));
    }
}
