// Runs failed spec files once more, alone, under continuous integration. Why, and why their number is limited:
// docs/adr/0213-retries-in-both-tiers.md. It does not run files itself or print.

import type { FileResult } from './result.ts';

/** If more files than this failed, none is repeated. */
const mostFiles = 3;

/**
 * Repeats the failed files of `names` with `run`, one at a time, in that order; their results become those of the second
 * attempt. Returns the first results of those that then passed. Does nothing without CI=true.
 */
export async function retryFlaky(
  names: readonly string[],
  results: Map<string, FileResult>,
  run: (name: string) => Promise<FileResult>,
): Promise<Map<string, FileResult>> {
  const flaky = new Map<string, FileResult>();
  const failed = names.filter((name) => (results.get(name)?.failed ?? 0) > 0);
  if (process.env.CI !== 'true' || failed.length > mostFiles) return flaky;
  for (const name of failed) {
    const first = results.get(name);
    const second = await run(name);
    results.set(name, second);
    if (first !== undefined && second.failed === 0) flaky.set(name, first);
  }
  return flaky;
}
