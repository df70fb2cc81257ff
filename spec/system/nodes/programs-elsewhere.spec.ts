// A program that one node runs, used at the other: two real gateways on one real PostgreSQL. Calls, sessions, conversations and drains
// cross; the death of its node is answered honestly, and its return is seen.

import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { listed, toolText } from '../../helpers/caller.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { register } from '../../helpers/mcp-program.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { heardWithinMs, startPair } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: programs of another node', { timeoutMs: 120_000 });
const onPostgresql = test.needs(server.url, server.skip);

let database: FreshDatabase;
let { a, b } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test
/** Last opened, first closed. */
const opened: (() => unknown)[] = [];

test.before(async () => {
  if (server.url === undefined) return;
  database = await freshDatabase(server);
  opened.unshift(database.drop);
  ({ a, b } = await startPair(database, opened));
  await register(a.admin, 'near', [program('program')]);
});
test.after(async () => {
  for (const close of opened) await close();
});

onPostgresql('a call over REST is answered by the program of the other node', async () => {
  const call = () => b.admin('POST /mcp/near/tools/call', { name: 'pid' });
  const pid = Number(toolText(await untilStatus(200, call, heardWithinMs)));
  assert.equal([a.program.descendants(), b.program.descendants()], [[pid], []]);
  await becomes(async () => (await listed(b.admin))['near/program']?.state, 'healthy', heardWithinMs);
});

test.run();

function program(id: string, ...flags: string[]) {
  return { id, command: process.execPath, args: [stdioServerPath, ...flags] };
}
