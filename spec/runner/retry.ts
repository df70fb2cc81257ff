// Runs failed spec files once more, alone, under continuous integration. Why, and why their number is limited:
// docs/adr/0213-the-spec-runner-and-its-tiers.md. It does not run files itself or print.

import type { FileResult } from './result.ts';

/** If more files than this failed, none is repeated. */
const mostFiles = 3;

/**
 * Repeats the failed ones of `files` with `run`, one at a time, in that order; their results become those of the second
 * attempt. Returns the first results of those that then passed. Does nothing without CI=true.
 */
export async function retryFlaky<F extends { readonly name: string }>(
  files: readonly F[],
  results: Map<string, FileResult>,
  run: (file: F) => Promise<FileResult>,
): Promise<Map<string, FileResult>> {
  const flaky = new Map<string, FileResult>();
  const failed = files.filter(({ name }) => (results.get(name)?.failed ?? 0) > 0);
  if (process.env.CI !== 'true' || failed.length > mostFiles) return flaky;
  for (const file of failed) {
    const first = results.get(file.name);
    const second = await run(file);
    results.set(file.name, second);
    if (first !== undefined && second.failed === 0) flaky.set(file.name, first);
  }
  return flaky;
}
