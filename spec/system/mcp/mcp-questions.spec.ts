// Calls that wait for the answer of their client when the gateway stops: it still accepts the answer. Drained and restarted
// instances: spec/gateway/mcp-rounds.spec.ts.

import * as assert from 'uvu/assert';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { untilStatus } from '../../helpers/eventually.ts';
import { isAnswer, isQuestion, LegacyClient, requestText, textOf } from '../../helpers/mcp-client.ts';
import { register, startHarness } from '../../helpers/mcp-program.ts';
import { Wire } from '../../helpers/mcp-wire.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: a call that waits for its client', { timeoutMs: 30_000 });

const ask = requestText(7, 'tools/call', { name: 'test_elicitation', arguments: { message: 'Who?' } });

for (const far of [true, false]) {
  const transport = far ? 'HTTP' : 'stdio';
  test(`${transport}: completes during a stop, with the client's answer on a new connection`, async () => {
    const backend = await startEverything({ era: 'legacy' });
    const ending = await startHarness();
    const wire = new Wire(ending.url);
    try {
      const way = far ? { endpoint: backend.url } : everythingProgram({ era: 'legacy' });
      const instance = { id: 'one', ...way };
      await register(ending.admin, 'ending', [instance]);
      const client = await LegacyClient.open(ending.wire, '/mcp/ending', {
        capabilities: { elicitation: {} },
      });
      const call = await client.wire.stream('/mcp/ending', { headers: client.headers, body: ask });
      const { id } = await call.sees(isQuestion);
      ending.program.signal('SIGTERM');
      await untilStatus(503, () => ending.admin('GET /readyz'));
      const result = { action: 'accept', content: { username: 'ada', email: 'x@example.com' } };
      const body = JSON.stringify({ jsonrpc: '2.0', id, result });
      assert.is((await wire.exchange('/mcp/ending', { headers: client.headers, body })).status, 202);
      assert.match(textOf(await call.sees(isAnswer)), '"username":"ada"');
      assert.equal(await ending.program.end(5_000), { code: 0, signal: null });
    } finally {
      wire.close();
      await ending.remove();
      await backend.close();
    }
  });
}

test.run();
