//! Clients of object stores: by a bucket's address, with the credentials that the environment
//! names as it does for the tools of each provider.

use std::sync::Arc;
use std::time::Duration;

use frond_db::Error;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::AzureConfigKey;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{ClientConfigKey, Error as StoreError, ObjectStore, RetryConfig};

use crate::azure_account::azure_builder;
use crate::remote_url::{BucketUrl, Protocol};
use crate::runtime::choose_cryptography;

/// Variables that name another store than Amazon's.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// The variable by which Google's own libraries find an emulator.
const GOOGLE_EMULATOR: &str = "STORAGE_EMULATOR_HOST";
/// Where the machine that a provider rents out is asked for credentials: it means nothing
/// elsewhere.
const OF_MACHINE: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

/// How long a client waits for an answer, and how often it asks again.
#[derive(Clone, Default)]
pub(crate) struct Patience {
    /// A request that takes longer has failed; `None`: as the client has it.
    pub timeout: Option<Duration>,
    pub retry: RetryConfig,
}

impl Patience {
    fn timeout(&self) -> Option<(ClientConfigKey, String)> {
        Some((ClientConfigKey::Timeout, format!("{} seconds", self.timeout?.as_secs())))
    }
}

/// Returns where the object `name` lies below `prefix`.
pub(crate) fn object_path(prefix: &str, name: &str) -> Path {
    match prefix.is_empty() {
        true => Path::from(name),
        false => Path::from(format!("{prefix}/{name}")),
    }
}

/// Returns a client of the bucket at `url`, by the usual variables; an empty one counts as none.
///
/// # Errors
/// `BadValue` if one of them can't be read, or what is needed isn't there; `Unavailable` if they
/// don't fit together.
pub(crate) fn object_client(
    url: &BucketUrl,
    patience: &Patience,
) -> Result<Arc<dyn ObjectStore>, Error> {
    choose_cryptography();
    let built = match url.protocol {
        Protocol::S3 => amazon(url, patience)?,
        Protocol::Azure => azure(url, patience)?,
        Protocol::Google => google(url, patience)?,
    };
    built.map_err(|error| Error::unavailable(format!("{}: {error}", url.bucket)))
}

type Built = Result<Arc<dyn ObjectStore>, StoreError>;

/// The environment, without what is empty.
fn variables() -> impl Iterator<Item = (String, String)> {
    let texts = std::env::vars_os().filter_map(|(name, value)| {
        // What is no text names nothing of ours.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    });
    texts.filter(|(_, value)| !value.is_empty())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the store at a URL is meant to be reached without TLS.
fn is_plain(name: &str, url: &str) -> Result<bool, Error> {
    let is_plain = url.starts_with("http://");
    if !is_plain && !url.starts_with("https://") {
        return Err(Error::bad_value(format!("{name}={url}: http(s)://HOST[:PORT] is expected")));
    }
    Ok(is_plain)
}

fn amazon(url: &BucketUrl, patience: &Patience) -> Result<Built, Error> {
    let mut builder = AmazonS3Builder::new().with_bucket_name(&url.bucket);
    for (name, value) in variables() {
        let key = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>();
        if let (true, Ok(key)) = (name.starts_with("AWS_"), key) {
            builder = builder.with_config(key, value);
        }
    }
    if let Some((name, url)) = ENDPOINTS.iter().find_map(|name| Some((name, variable(name)?))) {
        builder = builder.with_allow_http(is_plain(name, &url)?);
    }
    if let Some((key, value)) = patience.timeout() {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let built = builder.with_retry(patience.retry.clone()).build();
    Ok(built.map(|store| Arc::new(store) as Arc<dyn ObjectStore>))
}

fn azure(url: &BucketUrl, patience: &Patience) -> Result<Built, Error> {
    let mut builder = azure_builder(variables())?.with_container_name(&url.bucket);
    if let Some((key, value)) = patience.timeout() {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    let built = builder.with_retry(patience.retry.clone()).build();
    Ok(built.map(|store| Arc::new(store) as Arc<dyn ObjectStore>))
}

fn google(url: &BucketUrl, patience: &Patience) -> Result<Built, Error> {
    let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(&url.bucket);
    for (name, value) in variables() {
        let key = name.to_ascii_lowercase().parse::<GoogleConfigKey>();
        if let (true, Ok(key)) = (name.starts_with("GOOGLE_"), key) {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(host) = variable(GOOGLE_EMULATOR) {
        let url = if host.contains("://") { host } else { format!("http://{host}") };
        is_plain(GOOGLE_EMULATOR, &url)?;
        // It asks for no credentials, and the client would look for some at each put.
        builder = builder
            .with_config(GoogleConfigKey::BaseUrl, url)
            .with_config(GoogleConfigKey::BearerToken, "emulator");
    }
    builder = builder.with_bucket_name(&url.bucket);
    if let Some((key, value)) = patience.timeout() {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let built = builder.with_retry(patience.retry.clone()).build();
    Ok(built.map(|store| Arc::new(store) as Arc<dyn ObjectStore>))
}

/// The variables with credentials for a protocol.
fn credentials(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        Protocol::Azure => {
            "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY (or AZURE_STORAGE_CONNECTION_STRING)"
        }
        Protocol::Google => "GOOGLE_APPLICATION_CREDENTIALS",
    }
}

/// What is to be said of a store that refuses access.
pub(crate) fn refusal(protocol: Protocol, error: &StoreError) -> String {
    let names = credentials(protocol);
    format!("the store refuses access: {names} must be those of a user who has access ({error})")
}

/// What is to be said of another error. Credentials that no variable names are asked of the machine
/// that a provider rents out.
pub(crate) fn failure(protocol: Protocol, error: &StoreError) -> String {
    let what = error.to_string();
    if OF_MACHINE.iter().any(|address| what.contains(address)) {
        format!("no credentials: set {} ({what})", credentials(protocol))
    } else {
        what
    }
}
