// Runs a script of this repository with a recent enough Node: `node bin/with-node.mjs spec/run.ts balancing`.
// The scripts of package.json use it, because npm does not always link its installed Node into
// node_modules/.bin. Plain JavaScript that Node 12 can parse; node-version.mjs finds a recent Node.

import { resolve } from 'path';
import { fileURLToPath, pathToFileURL } from 'url';
import { giveUp, load, withRecentNode } from './node-version.mjs';

withRecentNode(fileURLToPath(import.meta.url), start);

/** Loads the script as if it were the main program: it sees its own name and arguments. */
async function start() {
  if (process.argv.length < 3) return giveUp('usage: node bin/with-node.mjs <script> [argument ...]');
  const script = resolve(process.argv[2]);
  process.argv.splice(1, 2, script);
  await load(pathToFileURL(script).href);
}
