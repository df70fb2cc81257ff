// MCP clients whose requests reach different nodes of one deployment: two real gateways on one real PostgreSQL. Each node serves
// requests that the other began, or refuses them with a reason; when a node is killed, the other one continues. Programs:
// two-gateways.spec.ts; revoked keys: mcp-revoked-elsewhere.spec.ts.

import * as assert from 'uvu/assert';
import { startEverything } from '../../../fixtures/everything-server.ts';
import { startHttpServer } from '../../../fixtures/http-server.ts';
import { LegacyClient, ModernClient, requestText, textOf } from '../../../helpers/clients/mcp-client.ts';
import { becomes, eventually } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import {
  ASKED,
  accepted,
  askOnce,
  heardWithinMs,
  isServed,
  refusalOf,
  retryOf,
  STATEFUL,
  startNode,
  startPair,
} from '../mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('journey: MCP on two nodes', {
  timeoutMs: 120_000,
});

let { a, b, options } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test

before(async () => {
  ({ a, b, options } = await startPair(database, opened));
  for (const name of ['one', 'two']) {
    await offer('modern', name, startEverything({ name, era: 'modern' }));
    await offer('pages', name, startHttpServer({ name, era: 'modern', pages: 3 }));
  }
  await offer('legacy', 'one', startEverything({ era: 'legacy' }));
  for (const template of ['modern', 'pages', 'legacy']) await isServed(b, `/mcp/${template}`, options);
});

for (const [path, prefix] of [
  ['/mcp/modern', ''],
  ['/mcp', 'modern__'],
] as const) {
  onPostgresql(
    `rounds of a call at ${path} continue at another node, with the instance that asked`,
    async () => {
      const params = { name: `${prefix}test_input_required_result_multi_round`, arguments: {} };
      for (const [here, there] of [
        [a, b],
        [b, a],
      ] as const) {
        // The states of the call are encrypted with the key of the instance's process.
        const first = await askOnce(here, path, options, 'tools/call', params);
        const second = await askOnce(there, path, options, 'tools/call', retryOf(params, first, accepted));
        const third = await askOnce(here, path, options, 'tools/call', retryOf(params, second, accepted));
        assert.match(textOf(third), 'ada');
      }
    },
  );
}

onPostgresql('a node with another secret refuses request states and cursors with a reason', async () => {
  const other = await startNode(database, { secret: 'another secret, which has 32 bytes or more' });
  try {
    await isServed(other, '/mcp/modern', options);
    const asked = await askOnce(a, '/mcp/modern', options, 'tools/call', STATEFUL);
    const retry = retryOf(STATEFUL, asked, accepted);
    const refused = await askOnce(other, '/mcp/modern', options, 'tools/call', retry);
    assert.equal(refusalOf(refused), [200, -32602, 'invalid_request_state']);
    const { nextCursor: cursor } = (await askOnce(a, '/mcp/pages', options, 'tools/list')).result;
    const unread = await askOnce(other, '/mcp/pages', options, 'tools/list', { cursor });
    assert.equal(refusalOf(unread), [200, -32602, 'invalid_cursor']);
  } finally {
    await other.remove();
  }
});

onPostgresql('a client of one node gets tools/list_changed for a registration at the other', async () => {
  const wanted = { toolsListChanged: true };
  const streams = await Promise.all(
    ['/mcp/modern', '/mcp'].map((path) => new ModernClient(b.wire, path, options).listen(wanted)),
  );
  for (const stream of streams)
    await stream.sees(({ method }) => method === 'notifications/subscriptions/acknowledged');
  await offer('modern', 'three', startEverything({ name: 'three', era: 'modern' }));
  for (const stream of streams) {
    await stream.sees(({ method }) => method === 'notifications/tools/list_changed', heardWithinMs);
    stream.close();
  }
  const joined = await new ModernClient(b.wire, '/mcp', options).listen(wanted);
  await offer('late', 'one', startEverything({ name: 'late', era: 'modern' }));
  await joined.sees(({ method }) => method === 'notifications/tools/list_changed', heardWithinMs);
  joined.close();
  await isServed(b, '/mcp/late', options);
});

onPostgresql(
  'a session of one node is served at the other, and a call that waits goes on there',
  async () => {
    const { headers, sessionId } = await LegacyClient.open(a.wire, '/mcp/legacy', options);
    const body = requestText(1, 'tools/list');
    // The other node reads the rows of the members again for an id that it does not know.
    const listed = await b.wire.exchange('/mcp/legacy', { headers, body });
    assert.equal([listed.status, listed.messages.length], [200, 1], sessionId);
    assert.is((await b.wire.exchange('/mcp/legacy', { method: 'DELETE', headers })).status, 200);
    assert.is((await a.wire.exchange('/mcp/legacy', { headers, body })).status, 404);
    const asked = await askOnce(a, '/mcp/legacy', options, 'tools/call', ASKED);
    const done = await askOnce(b, '/mcp/legacy', options, 'tools/call', retryOf(ASKED, asked, accepted));
    assert.match(textOf(done), 'ada');
  },
);

onPostgresql('clients of a killed node lose the calls it held, and continue at the other', async () => {
  const doomed = await startNode(database);
  try {
    await isServed(doomed, '/mcp/legacy', options);
    await isServed(doomed, '/mcp/modern', options);
    const session = await LegacyClient.open(doomed.wire, '/mcp/legacy', options);
    const asked = await askOnce(doomed, '/mcp/modern', options, 'tools/call', STATEFUL);
    const waiting = await askOnce(doomed, '/mcp/legacy', options, 'tools/call', ASKED);
    const watching = new ModernClient(doomed.wire, '/mcp/modern', options);
    const stream = await watching.listen({ toolsListChanged: true });

    doomed.program.signal('SIGKILL');
    assert.equal(await doomed.program.end(), { code: null, signal: 'SIGKILL' });
    assert.ok(await eventually(async () => stream.hasEnded, Boolean, 5_000));
    // State that the client carries continues; a call that waited there is lost, and is made again.
    const goesOn = await askOnce(b, '/mcp/modern', options, 'tools/call', retryOf(STATEFUL, asked, accepted));
    assert.is(textOf(goesOn), 'state-ok');
    // 503 until the other nodes have seen that it is gone.
    const retry = retryOf(ASKED, waiting, accepted);
    const lost = () => askOnce(b, '/mcp/legacy', options, 'tools/call', retry);
    await becomes(async () => refusalOf(await lost()), [200, -32602, 'call_lost']);
    const again = await askOnce(b, '/mcp/legacy', options, 'tools/call', ASKED);
    const done = await askOnce(b, '/mcp/legacy', options, 'tools/call', retryOf(ASKED, again, accepted));
    assert.match(textOf(done), 'ada');
    // The session goes on at the other node under its id.
    const { headers } = session;
    const body = requestText(1, 'tools/list');
    await becomes(async () => (await b.wire.exchange('/mcp/legacy', { headers, body })).status, 200);
  } finally {
    await doomed.remove();
  }
});

test.run();

/** Registers a backend at A; B learns of it. */
async function offer(
  template: string,
  name: string,
  starting: Promise<{ readonly url: string; close(): Promise<void> }>,
): Promise<void> {
  const backend = await starting;
  opened.push(() => backend.close());
  await register(a.admin, template, [{ id: `${template}-${name}`, endpoint: backend.url }]);
}
