//! Actions: what a privilege lets a user do with its resource.
//!
//! They are MongoDB's, by MongoDB's names, so that roles made elsewhere can be brought along, and
//! those of versions, which are Frond's own.

macro_rules! actions {
    ($($(#[$about:meta])* $variant:ident $name:literal)*) => {
        /// An action that a user may be allowed. In memory only: documents have the names.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Action {
            $($(#[$about])* $variant,)*
        }

        impl Action {
            /// All of them, in the order of their names.
            pub const ALL: &[Action] = &[$(Action::$variant,)*];

            /// Its name in documents.
            pub fn name(self) -> &'static str {
                match self {
                    $(Action::$variant => $name,)*
                }
            }
        }
    };
}

actions! {
    AddShard "addShard"
    AdvanceClusterTime "advanceClusterTime"
    AllCollectionStats "allCollectionStats"
    Analyze "analyze"
    AnalyzeShardKey "analyzeShardKey"
    AnyAction "anyAction"
    AppendOplogNote "appendOplogNote"
    ApplicationMessage "applicationMessage"
    ApplyOps "applyOps"
    AuditConfigure "auditConfigure"
    AuthSchemaUpgrade "authSchemaUpgrade"
    BypassDefaultMaxTimeMS "bypassDefaultMaxTimeMS"
    BypassDocumentValidation "bypassDocumentValidation"
    BypassWriteBlockingMode "bypassWriteBlockingMode"
    ChangeCustomData "changeCustomData"
    ChangeOwnCustomData "changeOwnCustomData"
    ChangeOwnPassword "changeOwnPassword"
    ChangePassword "changePassword"
    ChangeStream "changeStream"
    CheckFreeMonitoringStatus "checkFreeMonitoringStatus"
    CheckMetadataConsistency "checkMetadataConsistency"
    CleanupOrphaned "cleanupOrphaned"
    CleanupStructuredEncryptionData "cleanupStructuredEncryptionData"
    ClearJumboFlag "clearJumboFlag"
    CloseAllDatabases "closeAllDatabases"
    CollMod "collMod"
    CollStats "collStats"
    /// `frondGc`.
    CollectGarbage "collectGarbage"
    /// `frondCommit`.
    Commit "commit"
    Compact "compact"
    CompactStructuredEncryptionData "compactStructuredEncryptionData"
    ConfigureQueryAnalyzer "configureQueryAnalyzer"
    ConnPoolStats "connPoolStats"
    ConnPoolSync "connPoolSync"
    ConvertToCapped "convertToCapped"
    CpuProfiler "cpuProfiler"
    CreateCollection "createCollection"
    CreateIndex "createIndex"
    CreateRole "createRole"
    CreateSearchIndexes "createSearchIndexes"
    CreateUser "createUser"
    DbCheck "dbCheck"
    DbHash "dbHash"
    DbStats "dbStats"
    DropCollection "dropCollection"
    DropConnections "dropConnections"
    DropDatabase "dropDatabase"
    DropIndex "dropIndex"
    DropRole "dropRole"
    DropSearchIndex "dropSearchIndex"
    DropUser "dropUser"
    Emptycapped "emptycapped"
    EnableProfiler "enableProfiler"
    EnableSharding "enableSharding"
    /// `frondErase`.
    Erase "erase"
    ExportCollection "exportCollection"
    Find "find"
    FlushRouterConfig "flushRouterConfig"
    ForceUUID "forceUUID"
    Fsync "fsync"
    FsyncUnlock "fsyncUnlock"
    GetChangeStreamState "getChangeStreamState"
    GetClusterParameter "getClusterParameter"
    GetCmdLineOpts "getCmdLineOpts"
    GetDatabaseVersion "getDatabaseVersion"
    GetDefaultRWConcern "getDefaultRWConcern"
    GetLog "getLog"
    GetParameter "getParameter"
    GetShardMap "getShardMap"
    GetShardVersion "getShardVersion"
    GrantRole "grantRole"
    HostInfo "hostInfo"
    Impersonate "impersonate"
    ImportCollection "importCollection"
    IndexStats "indexStats"
    Inprog "inprog"
    Insert "insert"
    Internal "internal"
    InvalidateUserCache "invalidateUserCache"
    IssueDirectShardOperations "issueDirectShardOperations"
    KillAnyCursor "killAnyCursor"
    KillAnySession "killAnySession"
    KillCursors "killCursors"
    Killop "killop"
    ListCachedAndActiveUsers "listCachedAndActiveUsers"
    ListCollections "listCollections"
    ListCursors "listCursors"
    ListDatabases "listDatabases"
    ListIndexes "listIndexes"
    ListSampledQueries "listSampledQueries"
    ListSearchIndexes "listSearchIndexes"
    ListSessions "listSessions"
    ListShards "listShards"
    LogRotate "logRotate"
    /// `frondBranch`: making, deleting, protecting branches.
    ManageBranches "manageBranches"
    /// `frondMerge` and its relatives: pick, revert, rebase, resolving conflicts.
    Merge "merge"
    MoveChunk "moveChunk"
    MoveCollection "moveCollection"
    Netstat "netstat"
    OidReset "oidReset"
    OidcListKeys "oidcListKeys"
    OidcRefreshKeys "oidcRefreshKeys"
    OperationMetrics "operationMetrics"
    PlanCacheIndexFilter "planCacheIndexFilter"
    PlanCacheRead "planCacheRead"
    PlanCacheWrite "planCacheWrite"
    QuerySettings "querySettings"
    QueryStatsRead "queryStatsRead"
    QueryStatsReadTransformed "queryStatsReadTransformed"
    ReIndex "reIndex"
    /// Reading commits by their ids, by tags, or where remotes' branches were.
    ReadVersions "readVersions"
    RefineCollectionShardKey "refineCollectionShardKey"
    Remove "remove"
    RemoveShard "removeShard"
    RenameCollection "renameCollection"
    RenameCollectionSameDB "renameCollectionSameDB"
    RepairDatabase "repairDatabase"
    ReplSetConfigure "replSetConfigure"
    ReplSetGetConfig "replSetGetConfig"
    ReplSetGetStatus "replSetGetStatus"
    ReplSetHeartbeat "replSetHeartbeat"
    ReplSetResizeOplog "replSetResizeOplog"
    ReplSetStateChange "replSetStateChange"
    /// `frondReset` and `frondUndo`.
    ResetBranch "resetBranch"
    ReshardCollection "reshardCollection"
    Resync "resync"
    RevokeRole "revokeRole"
    RotateCertificates "rotateCertificates"
    RunAsLessPrivilegedUser "runAsLessPrivilegedUser"
    RunTenantMigration "runTenantMigration"
    ServerStatus "serverStatus"
    SetAuthenticationRestriction "setAuthenticationRestriction"
    SetChangeStreamState "setChangeStreamState"
    /// `frondClock`.
    SetClock "setClock"
    SetClusterParameter "setClusterParameter"
    SetDefaultRWConcern "setDefaultRWConcern"
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion"
    SetFreeMonitoring "setFreeMonitoring"
    SetParameter "setParameter"
    /// `frondPolicy`, and shortening the reflog.
    SetPolicy "setPolicy"
    SetUserWriteBlockMode "setUserWriteBlockMode"
    ShardedDataDistribution "shardedDataDistribution"
    ShardingState "shardingState"
    Shutdown "shutdown"
    SplitChunk "splitChunk"
    SplitVector "splitVector"
    StorageDetails "storageDetails"
    /// `frondTag`.
    Tag "tag"
    Top "top"
    Touch "touch"
    TrafficRecord "trafficRecord"
    TransitionFromDedicatedConfigServer "transitionFromDedicatedConfigServer"
    TransitionToDedicatedConfigServer "transitionToDedicatedConfigServer"
    Unlock "unlock"
    Update "update"
    UpdateSearchIndex "updateSearchIndex"
    /// `frondRemote`, `frondClone`, `frondFetch`, `frondPull`, `frondPush`.
    UseRemotes "useRemotes"
    UseTenant "useTenant"
    UseUUID "useUUID"
    Validate "validate"
    ViewRole "viewRole"
    ViewUser "viewUser"
}

/// A set of actions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ActionSet([u128; WORDS]);

const WORDS: usize = 2;
const _: () = assert!(Action::ALL.len() <= WORDS * u128::BITS as usize);

impl Action {
    /// The action of this name.
    pub fn named(name: &str) -> Option<Action> {
        let position = Action::ALL.binary_search_by(|action| action.name().cmp(name)).ok()?;
        Action::ALL.get(position).copied()
    }
}

impl ActionSet {
    /// A set of these.
    pub const fn of(actions: &[Action]) -> ActionSet {
        let (mut bits, mut position) = ([0; WORDS], 0);
        while position < actions.len() {
            let (word, bit) = place_of(actions[position]);
            bits[word] |= bit;
            position += 1;
        }
        ActionSet(bits)
    }

    /// Whether `action` is in it, by itself or because all are.
    pub fn allows(self, action: Action) -> bool {
        self.has(action) || self.has(Action::AnyAction)
    }

    /// The actions of both.
    pub fn union(self, other: ActionSet) -> ActionSet {
        ActionSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The actions that are in this one and not in `other`.
    pub fn without(self, other: ActionSet) -> ActionSet {
        ActionSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The actions, by name.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.has(*action))
    }

    fn has(self, action: Action) -> bool {
        let (word, bit) = place_of(action);
        self.0[word] & bit != 0
    }
}

/// Returns the word in which an action's bit lies, and the bit.
const fn place_of(action: Action) -> (usize, u128) {
    let position = action as u32;
    ((position / u128::BITS) as usize, 1 << (position % u128::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_found_by_their_names() {
        assert!(Action::ALL.is_sorted_by(|left, right| left.name() < right.name()));
        for action in Action::ALL {
            assert_eq!(Action::named(action.name()), Some(*action));
            assert_eq!(ActionSet::of(&[*action]).iter().collect::<Vec<_>>(), [*action]);
        }
        assert_eq!(Action::named("fly"), None);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = ActionSet::of(&[Action::Find, Action::Insert]);
        assert!(set.allows(Action::Find) && !set.allows(Action::Update));
        assert!(ActionSet::of(&[Action::AnyAction]).allows(Action::Update));
        let rest = set.without(ActionSet::of(&[Action::Find, Action::Update]));
        assert_eq!(rest, ActionSet::of(&[Action::Insert]));
        assert!(rest.without(rest).is_empty() && rest.union(set) == set);
    }
}
