//! Lists of actions that built-in roles have, each by where MongoDB has it.

use crate::access::Action::{self, *};

pub(super) const READ: &[Action] = &[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
];

/// Beside what [`READ`] has.
pub(super) const WRITE: &[Action] = &[
    CleanupStructuredEncryptionData,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    Remove,
    RenameCollectionSameDB,
    Update,
    UpdateSearchIndex,
];

pub(super) const USER_ADMIN: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];

pub(super) const DB_ADMIN: &[Action] = &[
    Analyze,
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConfigureQueryAnalyzer,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    StorageDetails,
    UpdateSearchIndex,
    Validate,
];

/// The actions that administrators may do on `system.profile`, besides those of [`READ`].
pub(super) const PROFILE_ADMIN: &[Action] = &[ConvertToCapped, CreateCollection, DropCollection];

pub(super) const ENABLE_SHARDING: &[Action] =
    &[AnalyzeShardKey, EnableSharding, MoveCollection, RefineCollectionShardKey, ReshardCollection];

pub(super) const CLUSTER_MONITOR: &[Action] = &[
    AllCollectionStats,
    ConnPoolStats,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSampledQueries,
    ListSessions,
    ListShards,
    Netstat,
    OperationMetrics,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    ShardedDataDistribution,
    ShardingState,
    Top,
    UseUUID,
];

pub(super) const MONITOR: &[Action] =
    &[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats];

pub(super) const HOST_MANAGER: &[Action] = &[
    ApplicationMessage,
    AuditConfigure,
    ConnPoolSync,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    OidReset,
    OidcListKeys,
    OidcRefreshKeys,
    ReplSetResizeOplog,
    Resync,
    RotateCertificates,
    SetParameter,
    Shutdown,
    Touch,
    TrafficRecord,
    Unlock,
];

pub(super) const CLUSTER_MANAGER: &[Action] = &[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    CheckMetadataConsistency,
    CleanupOrphaned,
    FlushRouterConfig,
    GetChangeStreamState,
    GetClusterParameter,
    GetDefaultRWConcern,
    ListSessions,
    ListShards,
    QuerySettings,
    QueryStatsRead,
    QueryStatsReadTransformed,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetStateChange,
    Resync,
    RunTenantMigration,
    SetChangeStreamState,
    SetClusterParameter,
    SetDefaultRWConcern,
    SetFeatureCompatibilityVersion,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
];

pub(super) const MANAGE_SHARDS: &[Action] = &[
    AnalyzeShardKey,
    ClearJumboFlag,
    ConfigureQueryAnalyzer,
    EnableSharding,
    MoveChunk,
    MoveCollection,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
];

pub(super) const CHANGE: &[Action] = &[Insert, Remove, Update];

pub(super) const RESTORE: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    Insert,
    UpdateSearchIndex,
];

pub(super) const INDEXES: &[Action] =
    &[CreateIndex, CreateSearchIndexes, DropIndex, DropSearchIndex];

pub(super) const MAKE_VERSIONS: &[Action] = &[Commit, Merge, Tag];
pub(super) const MOVE_BRANCHES: &[Action] = &[ManageBranches, ResetBranch, SetPolicy];
