// A node that was frozen, and wakes while its database does not answer: it answers known callers within 3 s, or refuses them.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { caller, callTool, newKey, statusAndCode } from '../../helpers/clients/caller.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { register } from '../../helpers/programs/mcp-program.ts';
import { nothing, startToolServer } from '../attacks/attack.ts';
import { journey } from './journey.ts';
import { askOnce, capabilities, isServed, refusalOf, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, opened, database } = await journey(
  'journey: a node that wakes without its database',
  {
    timeoutMs: 120_000,
    isForEach: true,
  },
);
/** Longer than others wait for a silent node. */
const FROZEN_MS = 15_000;
const ANSWERED_MS = 3_000;

for (const isAlone of [true, false])
  onPostgresql(
    isAlone
      ? 'it serves known callers within 3 s, as the database is away for all'
      : 'it serves or refuses known callers within 3 s while another node reaches the database',
    async () => {
      const backend = await startToolServer({ fast: nothing });
      opened.unshift(() => backend.close());
      const line = await serverLine(database.url);
      opened.unshift(() => line.close());
      const node = await startNode({ url: line.url }, { id: 'a' });
      opened.unshift(node.remove);
      if (!isAlone) opened.unshift((await startNode(database, { id: 'b' })).remove);
      await register(node.admin, 'demo', [{ id: 'one', endpoint: backend.url }]);
      const { headers } = await newKey(node.admin, 'clients');
      const options = { capabilities, headers };
      await isServed(node, '/mcp/demo', options);
      const client = await LegacyClient.open(node.wire, '/mcp/demo', options);
      const asks = {
        rest: async () => statusAndCode(await callTool(caller(node.url, headers), 'demo', 'fast')),
        modern: async () =>
          refusalOf(await askOnce(node, '/mcp/demo', options, 'tools/call', { name: 'fast', arguments: {} })),
        legacy: async () => {
          const params = { name: 'fast', arguments: {} };
          const body = JSON.stringify({ jsonrpc: '2.0', id: 'one', method: 'tools/call', params });
          const { status } = await node.wire.exchange('/mcp/demo', { headers: client.headers, body });
          return [status];
        },
      };
      for (const ask of Object.values(asks)) assert.is((await ask())[0], 200);

      node.program.signal('SIGSTOP');
      line.silence();
      await delay(FROZEN_MS);
      node.program.signal('SIGCONT');
      const first = await Promise.all(Object.values(asks).map(timed));
      const next = await Promise.all(Object.values(asks).map(timed));
      const answers = [...first, ...next].map(({ answer }) => answer);
      const times = [...first, ...next].map(({ tookMs }) => Math.round(tookMs));
      const [served, refused] = [200, 503];
      const cut = isAlone ? served : refused;
      const wanted = [served, cut, cut];
      assert.equal(
        answers.map(([status]) => status),
        [...wanted, ...wanted],
        JSON.stringify(answers),
      );
      assert.ok(Math.max(...times) < ANSWERED_MS, `answered after ${times.join()} ms`);
    },
  );

test.run();

async function timed<T>(ask: () => Promise<T>): Promise<{ readonly answer: T; readonly tookMs: number }> {
  const startMs = performance.now();
  const answer = await ask();
  return { answer, tookMs: performance.now() - startMs };
}
