// Whether a database file is still the one that was opened. SQLite goes on writing into a file that was moved or deleted:
// everything would be answered, and nothing would be there after a restart.

import { statSync } from 'node:fs';

/** Looks at the file now; the function it gives back says later whether the path still leads to it. */
export function fileIdentity(path: string): () => boolean {
  const opened = identityOf(path);
  return () => identityOf(path) === opened;
}

/** Undefined when there is no such file. Synchronous: 3 us, and nothing may come between the look and the statement. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}
