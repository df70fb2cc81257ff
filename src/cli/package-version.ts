// The version of the package, for `--version` and for the first line of `gateway start`.

import { readFileSync } from 'node:fs';

/** MAJOR.MINOR.PATCH as package.json says. */
export function packageVersion(): string {
  // Two folders up, from src/cli and from dist/cli alike.
  const file = new URL('../../package.json', import.meta.url);
  const { version }: { version?: unknown } = JSON.parse(readFileSync(file, 'utf8'));
  return String(version);
}
