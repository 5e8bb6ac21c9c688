//! MongoDB's error codes and their names: the one table, sorted by number.

macro_rules! codes {
    ($($name:ident = $number:literal),* $(,)?) => {
        /// A code of MongoDB's; `codeName` is the variant's name.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Code {
            $($name,)*
            /// A code that has no name of its own (`Location40353`).
            Location(i32),
        }

        impl Code {
            /// The number.
            pub fn number(self) -> i32 {
                match self {
                    $(Code::$name => $number,)*
                    Code::Location(number) => number,
                }
            }

            /// The code of a number: [`Code::Location`] if it has no name in this table.
            pub fn of(number: i32) -> Code {
                match number {
                    $($number => Code::$name,)*
                    other => Code::Location(other),
                }
            }

            /// The `codeName`.
            pub fn name(self) -> String {
                match self {
                    $(Code::$name => stringify!($name).to_owned(),)*
                    Code::Location(number) => format!("Location{number}"),
                }
            }
        }
    };
}

codes! {
    InternalError = 1,
    BadValue = 2,
    NoSuchKey = 4,
    GraphContainsCycle = 5,
    HostUnreachable = 6,
    HostNotFound = 7,
    FailedToParse = 9,
    UserNotFound = 11,
    UnsupportedFormat = 12,
    Unauthorized = 13,
    TypeMismatch = 14,
    Overflow = 15,
    InvalidLength = 16,
    ProtocolError = 17,
    AuthenticationFailed = 18,
    CannotReuseObject = 19,
    IllegalOperation = 20,
    InvalidBSON = 22,
    AlreadyInitialized = 23,
    LockTimeout = 24,
    NamespaceNotFound = 26,
    IndexNotFound = 27,
    PathNotViable = 28,
    RoleNotFound = 31,
    FileRenameFailed = 37,
    CannotBackfillArray = 39,
    ConflictingUpdateOperators = 40,
    CursorNotFound = 43,
    NoMatchingDocument = 47,
    NamespaceExists = 48,
    InvalidRoleModification = 49,
    MaxTimeMSExpired = 50,
    DollarPrefixedFieldName = 52,
    InvalidIdField = 53,
    NotSingleValueField = 54,
    InvalidDBRef = 55,
    EmptyFieldName = 56,
    DottedFieldName = 57,
    CommandNotFound = 59,
    ImmutableField = 66,
    CannotCreateIndex = 67,
    IndexAlreadyExists = 68,
    ShardNotFound = 70,
    InvalidOptions = 72,
    InvalidNamespace = 73,
    NodeNotFound = 74,
    UnknownReplWriteConcern = 79,
    NoProgressMade = 82,
    IndexOptionsConflict = 85,
    IndexKeySpecsConflict = 86,
    NetworkTimeout = 89,
    ShutdownInProgress = 91,
    InvalidReplicaSetConfig = 93,
    NotYetInitialized = 94,
    OperationFailed = 96,
    DBPathInUse = 98,
    UnsatisfiableWriteConcern = 100,
    NewReplicaSetConfigurationIncompatible = 103,
    ConfigurationInProgress = 109,
    NotExactValueField = 111,
    WriteConflict = 112,
    CommandNotSupported = 115,
    ConflictingOperationInProgress = 117,
    DocumentValidationFailure = 121,
    NotAReplicaSet = 123,
    CommandFailed = 125,
    FailedToSatisfyReadPreference = 133,
    ReadConcernMajorityNotAvailableYet = 134,
    CappedPositionLost = 136,
    JSInterpreterFailure = 139,
    ExceededMemoryLimit = 146,
    IncompatibleCollationVersion = 161,
    ViewDepthLimitExceeded = 165,
    CommandNotSupportedOnView = 166,
    OptionNotSupportedOnView = 167,
    InvalidPipelineOperator = 168,
    CommandOnShardedViewNotSupportedOnMongod = 169,
    CannotIndexParallelArrays = 171,
    QueryPlanKilled = 175,
    AmbiguousIndexKeyPattern = 181,
    InvalidViewDefinition = 182,
    ClientMetadataCannotBeMutated = 186,
    PrimarySteppedDown = 189,
    FailPointSetFailed = 191,
    InvalidIndexSpecificationOption = 197,
    TimeProofMismatch = 204,
    IncompleteTransactionHistory = 217,
    QueryFeatureNotAllowed = 224,
    TransactionTooOld = 225,
    MaxSubPipelineDepthExceeded = 232,
    CursorKilled = 237,
    SnapshotTooOld = 239,
    ConversionFailure = 241,
    SnapshotUnavailable = 246,
    StaleDbVersion = 249,
    NoSuchTransaction = 251,
    TransactionCommitted = 256,
    TransactionTooLarge = 257,
    InvalidResumeToken = 260,
    TooManyLogicalSessions = 261,
    ExceededTimeLimit = 262,
    OperationNotSupportedInTransaction = 263,
    PreparedTransactionInProgress = 267,
    IndexBuildAborted = 276,
    ChangeStreamFatalError = 280,
    UserDataInconsistent = 284,
    ChangeStreamHistoryLost = 286,
    NoQueryExecutionPlans = 291,
    QueryExceededMemoryLimitNoDiskUseAllowed = 292,
    CannotDropShardKeyIndex = 300,
    UnsatisfiableCommitQuorum = 319,
    APIVersionError = 322,
    APIStrictError = 323,
    APIDeprecationError = 324,
    APIMismatchError = 325,
    MechanismUnavailable = 334,
    CannotConvertIndexToUnique = 359,
    TemporarilyUnavailable = 365,
    UserWritesBlocked = 371,
    ReauthenticationRequired = 391,
    SocketException = 9001,
    NotWritablePrimary = 10107,
    BSONObjectTooLarge = 10334,
    DuplicateKey = 11000,
    InterruptedAtShutdown = 11600,
    Interrupted = 11601,
    InterruptedDueToReplStateChange = 11602,
    DatabaseDifferCase = 13297,
    StaleConfig = 13388,
    NotPrimaryNoSecondaryOk = 13435,
    NotPrimaryOrSecondary = 13436,
    OutOfDiskSpace = 14031,
    SearchNotEnabled = 31082,
    NotARetryableWriteCommand = 50768,
}
