#!/usr/bin/env node
// The entry point of the program: makes sure that a recent enough Node runs it, then calls the command line.
// Plain JavaScript that Node 12 can parse; node-version.mjs finds a recent Node.

import { existsSync } from 'fs';
import { dirname, join } from 'path';
import { fileURLToPath, pathToFileURL } from 'url';
import { keepCompiledCode } from './compile-cache.mjs';
import { shareInlined } from './inlined-packages.mjs';
import { giveUp, isInstalled, load, withRecentNode } from './node-version.mjs';
import { takeRelativeImports } from './relative-imports.mjs';

const self = fileURLToPath(import.meta.url);

// Without a listener SIGUSR1 opens Node's inspector, through which each program of the same user runs code in this process.
process.on('SIGUSR1', () => {});
withRecentNode(self, start);

/** Loads the command line and leaves its result as the exit code. Nothing is cut off: the process ends when all work is done. */
async function start() {
  const entry = findEntry();
  if (!entry) return giveUp('stagedoor is not built here: run npm run build');
  keepCompiledCode();
  if (entry.endsWith('.js')) shareInlined(dirname(entry));
  else takeRelativeImports(join(dirname(self), '..'));
  const program = await load(pathToFileURL(entry).href);
  if (!program) return;
  process.exitCode = 1; // if nothing is left to wait for before there is a result
  process.exitCode = await program.main(process.argv.slice(2));
  // All work is done then. Otherwise Node first gives the signals back, and the same Ctrl-C, arriving again, would be the exit code.
  process.once('beforeExit', () => process.exit());
}

/** A clone runs its sources; an installed package runs dist/program, because Node strips no types under node_modules. */
function findEntry() {
  const root = join(dirname(self), '..');
  const source = join(root, 'src', 'cli', 'main.ts');
  const built = join(root, 'dist', 'program', 'main.js');
  return [isInstalled() ? '' : source, built].find((file) => file && existsSync(file));
}
