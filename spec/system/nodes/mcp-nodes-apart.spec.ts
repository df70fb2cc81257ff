// What two nodes of one deployment do not share, and the effect on MCP clients: a program runs on one of them, a node is killed
// while it has calls, sessions and streams. What they share: mcp-two-nodes.spec.ts; revoked keys:
// mcp-revoked-elsewhere.spec.ts.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { listed } from '../../helpers/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { LegacyClient, ModernClient, textOf } from '../../helpers/mcp-client.ts';
import { register } from '../../helpers/mcp-program.ts';
import type { OpenStream } from '../../helpers/mcp-wire.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { startBalancer } from './mcp-balancer.ts';
import {
  ASKED,
  accepted,
  askOnce,
  heardWithinMs,
  isServed,
  refusalOf,
  retryOf,
  SIMPLE,
  STATEFUL,
  startNode,
  startPair,
} from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: MCP nodes apart', { timeoutMs: 120_000 });
const onPostgresql = test.needs(server.url, server.skip);

let database: FreshDatabase;
let { a, b, options } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test
/** Last opened, first closed. */
const opened: (() => unknown)[] = [];

test.before(async () => {
  if (server.url === undefined) return;
  database = await freshDatabase(server);
  opened.unshift(database.drop);
  ({ a, b, options } = await startPair(database, opened));
  for (const era of ['modern', 'legacy'] as const) {
    const backend = await startEverything({ era });
    opened.push(() => backend.close());
    await register(a.admin, era, [{ id: `far-${era}`, endpoint: backend.url }]);
    await isServed(b, `/mcp/${era}`, options);
  }
});
test.after(async () => {
  for (const close of opened) await close();
});

onPostgresql('a program is served only by the node on which it was registered', async () => {
  const path = '/mcp/near';
  const programOf = (name: string) => ({ id: name, ...everythingProgram({ name, era: 'modern' }) });
  await register(a.admin, 'near', [programOf('of-a')]);
  const seen = await eventually(
    () => listed(b.admin),
    (all) => 'near/of-a' in all,
    heardWithinMs,
  );
  assert.equal([seen['near/of-a']?.state, b.program.descendants()], ['stopped', []]);
  const elsewhereRefusal = [503, 503, 'NO_HEALTHY_INSTANCE'];
  for (const [method, params] of Object.entries({
    'server/discover': {},
    'tools/list': {},
    'tools/call': SIMPLE,
  })) {
    const refused = await askOnce(b, path, options, method, params);
    assert.equal([method, ...refusalOf(refused)], [method, ...elsewhereRefusal]);
  }
  const session = await LegacyClient.open(b.wire, path, options).catch(String);
  assert.match(String(session), /503 .*NO_HEALTHY_INSTANCE/);

  // Each node has a program: then either node serves a client.
  await register(b.admin, 'near', [programOf('of-b')]);
  const answers = await Promise.all(
    [a, b].map((node) =>
      askOnce(node, path, options, 'tools/call', { name: 'test_instance', arguments: {} }),
    ),
  );
  assert.equal(
    answers.map(({ instanceId }) => instanceId),
    ['of-a', 'of-b'],
  );
  // A retry of a call is the exception: only the node that began it serves it.
  const first = await askOnce(a, path, options, 'tools/call', STATEFUL);
  const retry = retryOf(STATEFUL, first, accepted);
  const elsewhere = await askOnce(b, path, options, 'tools/call', retry);
  assert.equal(refusalOf(elsewhere), elsewhereRefusal);
  assert.is(elsewhere.error?.message, 'Instance "of-a" cannot be used on this node.');
  const back = await askOnce(a, path, options, 'tools/call', retry);
  assert.equal([back.instanceId, textOf(back)], ['of-a', 'state-ok']);
});

onPostgresql('clients lose what a killed node held open, and continue at the other node', async () => {
  const doomed = await startNode(database);
  const balancer = await startBalancer([doomed.url, b.url], { stickTo: ['Mcp-Session-Id'] });
  const connect = async () => {
    const client = new Client({ name: 'spec', version: '1' });
    const url = new URL(`${balancer.url}/mcp/legacy`);
    await client.connect(
      new StreamableHTTPClientTransport(url, { requestInit: { headers: options.headers } }),
    );
    return client;
  };
  try {
    await isServed(doomed, '/mcp/legacy', options);
    await isServed(doomed, '/mcp/modern', options);
    const session = await connect();
    assert.equal(balancer.taken.at(0), 0);
    const asked = await askOnce(doomed, '/mcp/modern', options, 'tools/call', STATEFUL);
    const parked = await askOnce(doomed, '/mcp/legacy', options, 'tools/call', ASKED);
    const stream: OpenStream = await new ModernClient(doomed.wire, '/mcp/modern', options).listen({
      toolsListChanged: true,
    });

    doomed.program.signal('SIGKILL');
    assert.equal(await doomed.program.end(), { code: null, signal: 'SIGKILL' });
    assert.ok(await eventually(async () => stream.hasEnded, Boolean, 5_000));
    // State that the client carries continues; a call that was parked there is lost, and is made again.
    const goesOn = await askOnce(b, '/mcp/modern', options, 'tools/call', retryOf(STATEFUL, asked, accepted));
    assert.is(textOf(goesOn), 'state-ok');
    const lost = await askOnce(b, '/mcp/legacy', options, 'tools/call', retryOf(ASKED, parked, accepted));
    assert.equal(refusalOf(lost), [200, -32602, 'call_not_here']);
    const again = await askOnce(b, '/mcp/legacy', options, 'tools/call', ASKED);
    const done = await askOnce(b, '/mcp/legacy', options, 'tools/call', retryOf(ASKED, again, accepted));
    assert.match(textOf(done), 'ada');
    // The session is unknown at the other node: its client initializes again.
    const failure: unknown = await session.callTool(SIMPLE).catch((error: unknown) => error);
    assert.equal(Object(failure).code, 404);
    await session.close();
    const next = await connect();
    assert.match(JSON.stringify(await next.callTool(SIMPLE)), 'simple');
    await next.close();
  } finally {
    await balancer.close();
    await doomed.remove();
  }
});

test.run();
