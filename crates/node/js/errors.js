// What this package throws, beside the driver's errors.

/** Another process has the data directory, and can't be reached. */
export class DirectoryInUse extends Error {
  name = "DirectoryInUse";

  constructor(path) {
    super(`another process has ${path}: a server that isn't this package's? Use connect() for it`);
  }
}

/** A merge that waits for decisions: `database` has `conflicts`, `mergeContinue` and `mergeAbort`. */
export class MergeConflicts extends Error {
  name = "MergeConflicts";

  constructor(database, counts) {
    const counted = counts.map((it) => `${it.count} in ${it.collection}`).join(", ");
    super(
      `conflicts: ${counted}. Decide them (${database.databaseName}: conflicts(), resolve()), then call ` +
        "mergeContinue(); or mergeAbort()",
    );
    this.database = database;
  }
}
