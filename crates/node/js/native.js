// The native module of this platform: native/PLATFORM-PROCESSOR.node beside this directory.

import { createRequire } from "node:module";

const name = `${process.platform}-${process.arch}.node`;

function load() {
  try {
    return createRequire(import.meta.url)(`../native/${name}`);
  } catch (error) {
    throw new Error(`fronddb can't load its native module ${name}: ${error.message}`, { cause: error });
  }
}

export const { start, socketOf } = load();
