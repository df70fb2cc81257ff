// The suite of a journey of several nodes, on a PostgreSQL database of its own. Without a server its tests are skipped.

import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { type Body, type SuiteOptions, suite } from '../../helpers/suite.ts';

interface JourneyOptions extends SuiteOptions {
  /** Each test has another database, and leaves nothing open. Default: all have the same one. */
  readonly isForEach?: boolean;
}

/**
 * `onPostgresql` declares a test, `before` what precedes them when there is a server. What is in `opened` is closed at the end, in its
 * order: put what was opened last first. A suite whose nodes need a folder of its own closes them earlier, by `test.after(close)`.
 */
export async function journey(name: string, { isForEach = false, ...options }: JourneyOptions) {
  const server = await postgresql();
  const test = suite(name, options);
  const opened: (() => unknown)[] = [];
  const database = { url: '' };
  let drop = async (): Promise<void> => undefined;
  const close = async (): Promise<void> => {
    for (const each of opened.splice(0)) await each();
  };
  const before = (body: Body): void => {
    const hook = isForEach ? test.before.each : test.before;
    hook(() => (server.url === undefined ? undefined : body()));
  };
  const after = isForEach ? test.after.each : test.after;
  before(async () => {
    const fresh = await freshDatabase({ url: String(server.url) });
    database.url = fresh.url;
    drop = fresh.drop;
  });
  after(async () => {
    await close();
    await drop();
  });
  return { test, onPostgresql: test.needs(server.url, server.skip), before, opened, close, database };
}
