//! Opens and serves, as the arguments say.

use std::sync::Arc;

use frond_db::{ChangeRetention, FrondOptions, Reserve, RetentionBegins};
use frond_remote::{HttpOptions, PlaceTokens};
use frond_server::{
    BeginningParameters, BegunSet, ClientTls, ClusterKey, Hooks, LogOutput, MemberOptions,
    RemoteOpener, Replica, ReplicaOptions, ServerOptions, SetBeginning, Supervisor,
};

use super::process::begin_anew;
use super::values::Parameter;
use super::{Changes, MEMBERS, Serve};
use crate::commands::transfer::read_text;
use crate::failure::Failure;

/// The memory of a member of a set besides its databases: entries that come, that are written and
/// that wait to be applied. It is a third of the memory at most.
const UNDER_WAY_BYTES: u64 = 64 << 20;
const UNDER_WAY_SHARE: u64 = 3;

impl Serve {
    /// Returns how the data directory is opened, within so much memory.
    pub(super) fn database_options(&self, budget: Option<u64>) -> FrondOptions {
        let beside = |bytes: u64| match self.members.is_empty() {
            true => bytes,
            false => bytes - UNDER_WAY_BYTES.min(bytes / UNDER_WAY_SHARE),
        };
        let mut options = match (self.memory, budget) {
            (Some(bytes), _) => FrondOptions::for_memory(beside(bytes)),
            (None, Some(bytes)) => FrondOptions::within_memory(beside(bytes)),
            (None, None) => FrondOptions::default(),
        };
        if let Some(megabytes) = self.cache {
            options.engine.cache_bytes = megabytes.saturating_mul(1 << 20);
        }
        options.engine.reserve = self.reserve.map_or(Reserve::Share, Reserve::Bytes);
        options.engine.changes = ChangeRetention {
            begins: match self.changes {
                Changes::Always => RetentionBegins::AtOnce,
                Changes::WhenWatched | Changes::Off => RetentionBegins::WhenRequested,
            },
            seconds: self.changes_hours.saturating_mul(3600),
            bytes: if self.changes == Changes::Off { 0 } else { self.changes_bytes },
        };
        options.query_cores_max = self.query_cores;
        options.refuses_scripts = self.noscripting;
        options.temporary_disk_bytes_max =
            self.temporary_disk_max.map(|megabytes| megabytes.saturating_mul(1 << 20));
        options
    }

    /// Returns how the server serves it, but for where it listens.
    pub(super) fn server_options(
        &self,
        budget: Option<u64>,
        replica: Option<Arc<Replica>>,
    ) -> Result<ServerOptions, Failure> {
        let (test_commands, parameters) = self.parameters();
        Ok(ServerOptions {
            arguments: std::env::args().collect(),
            parsed: self.parsed.clone(),
            supervisor: Supervisor::of_environment(),
            metrics_listen: self.network.metrics_listen.clone(),
            console: self.network.console(),
            data_directory: self.data.display().to_string(),
            hooks: if self.no_hooks { Hooks::default() } else { Hooks::of(&self.data) },
            member: MemberOptions {
                replica_set: self.set_name().to_owned(),
                advertise: replica
                    .as_ref()
                    .map(|replica| replica.options.own.clone())
                    .or_else(|| self.advertise.clone()),
            },
            replica,
            beginning: self.beginning()?,
            reads_only: self.store.reads_only(),
            document_bytes_max: self.max_document_bytes as usize,
            auth: self.auth,
            router_key: self
                .router_key
                .as_deref()
                .map(ClusterKey::read)
                .transpose()
                .map_err(Failure::failed)?,
            line_tls: ClientTls {
                authorities_file: self.place_ca_file.clone(),
                certificate_key_file: None,
            },
            insecure: self.insecure_no_auth,
            places: self.places()?,
            test_commands,
            parameters,
            audit_path: self.audit_path.clone(),
            audit_filter: self.audit_filter.clone(),
            log: match &self.log_path {
                Some(path) => LogOutput::File(path.clone()),
                None if self.as_mongod => LogOutput::StandardOutput,
                None => LogOutput::StandardError,
            },
            compressors: self.network.compressors(),
            ..budget.map_or_else(ServerOptions::default, ServerOptions::for_memory)
        })
    }

    /// Whether clients may ask for faults, and what other parameters begin with: the last holds.
    fn parameters(&self) -> (bool, BeginningParameters) {
        let mut has_test_commands = false;
        let mut begin = BeginningParameters {
            slow_millis: self.slow_ms,
            slow_sample_rate: self.slow_sample_rate,
            is_quiet: self.quiet,
            log_rotation: self.log_rotate.rotation(),
            profile_level: self.profile.level(),
            ..BeginningParameters::default()
        };
        for parameter in &self.set_parameter {
            match *parameter {
                Parameter::TestCommands(is_on) => has_test_commands = is_on,
                Parameter::ExpireSeconds(seconds) => begin.expire_seconds = Some(seconds),
                Parameter::SnapshotWindowSeconds(seconds) => {
                    begin.snapshot_window_seconds = Some(seconds);
                }
                Parameter::RequiresApiVersion(is_on) => begin.requires_api_version = is_on,
                Parameter::AcceptsApiVersion2(is_on) => begin.accepts_second_api_version = is_on,
                Parameter::TransactionSeconds(seconds) => begin.transaction_seconds = Some(seconds),
                Parameter::CursorMillis(millis) => begin.cursor_millis = Some(millis),
                Parameter::LocalhostException(is_on) => begin.has_no_localhost_exception = !is_on,
                Parameter::LogLevel(level) => begin.log_level = Some(level),
                Parameter::Moot => {}
            }
        }
        (self.enable_test_commands || has_test_commands, begin)
    }

    /// Returns the opener of remotes for clients.
    fn places(&self) -> Result<RemoteOpener, Failure> {
        let tokens = match &self.place_token_file {
            Some(file) => PlaceTokens::parse(&read_text(file)?).map_err(|error| {
                Failure::failed(format!("{}: {}", file.display(), error.message))
            })?,
            None => PlaceTokens::default(),
        };
        let authorities = self.place_ca_file.clone();
        Ok(RemoteOpener::new(move |url, database, token| {
            let token = token.or_else(|| tokens.of(url)).map(str::to_owned);
            let authorities = authorities.clone();
            frond_remote::open(
                url,
                database,
                &HttpOptions { token, authorities, ..HttpOptions::default() },
            )
        }))
    }

    /// Returns how the server is a member of a set of several, if it is.
    pub(super) fn replica(&self, listen: &str) -> Result<Option<ReplicaOptions>, Failure> {
        let (set, restart) = (self.set_name().to_owned(), begin_anew as fn());
        let log_bytes_max = self.set_log_max;
        if let Some(BegunSet { own, members, .. }) = self.begun.clone() {
            let key = self.derived_key()?.ok_or_else(|| {
                let what = "it is a member of a replica set: with --auth it needs --keyFile";
                Failure::Usage(what.to_owned())
            })?;
            let begins = true;
            let options = ReplicaOptions { set, members, own, key, begins, log_bytes_max, restart };
            return Ok(Some(options));
        }
        let Some(key) = &self.cluster_key else { return Ok(None) };
        let own = self.advertise.as_deref().unwrap_or(listen).to_owned();
        let mut members = self.members.clone();
        members.sort();
        members.dedup();
        if members.len() != self.members.len() || !MEMBERS.contains(&members.len()) {
            let what = "--members names three to seven members, each once".to_owned();
            return Err(Failure::Usage(what));
        }
        if !members.contains(&own) {
            let what = format!(
                "{own} isn't among --members: --listen or --advertise says which one this is"
            );
            return Err(Failure::Usage(what));
        }
        let key = ClusterKey::read(key).map_err(Failure::failed)?;
        let begins = false;
        Ok(Some(ReplicaOptions { set, members, own, key, begins, log_bytes_max, restart }))
    }

    /// Returns how the server becomes a member of a set at `replSetInitiate`, as mongod does.
    fn beginning(&self) -> Result<Option<SetBeginning>, Failure> {
        if !self.as_mongod || !self.members.is_empty() {
            return Ok(None);
        }
        let key = self.derived_key()?;
        Ok(key.map(|key| SetBeginning { key, restart: begin_anew }))
    }

    /// The key of the members of such a set: of the key file, or, where no client needs to log in,
    /// of the set's name. Without a key file there is none where clients log in.
    fn derived_key(&self) -> Result<Option<ClusterKey>, Failure> {
        match &self.key_file {
            Some(file) => ClusterKey::derived_from(file).map(Some).map_err(Failure::failed),
            None if self.auth => Ok(None),
            None => Ok(Some(ClusterKey::derived(self.set_name().as_bytes()))),
        }
    }
}
