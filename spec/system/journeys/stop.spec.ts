// What clients see of a stop: not ready first, with `shutdown.delay`; and no kept connection is reset while clients call as fast as
// they can.

import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { caller, callTool } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { register } from '../../helpers/programs/mcp-program.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';
import type { RawServer } from '../../transports/raw-server.ts';
import { nothing, startToolServer } from '../attacks/attack.ts';

const test = suite('journey: stop', { timeoutMs: 60_000 });
let backend: RawServer;
let gateway: Program;
test.before(async () => {
  backend = await startToolServer({ fast: nothing });
});
test.after.each(() => gateway.remove());
test.after(() => backend.close());

async function begin(...words: string[]): Promise<string> {
  gateway = new Program(['gateway', 'start', '--port', '0', ...words]);
  const url = await gateway.url();
  await register(caller(url), 'demo', [{ id: 'one', endpoint: backend.url }]);
  return url;
}

test('with a delay /readyz answers 503 first and calls are served; then the gateway stops', async () => {
  const url = await begin('--shutdown-delay', '2');
  const ask = caller(url);
  gateway.signal('SIGTERM');
  await becomes(async () => (await ask('GET /readyz')).status, 503);
  assert.is((await callTool(ask, 'demo', 'fast')).status, 200);
  const call = await callTool(ask, 'demo', 'fast');
  assert.equal([call.status, call.headers.get('connection')], [200, 'close']);
  assert.equal(await gateway.end(20_000), { code: 0, signal: null });
});

test('a second signal ends the delay in order', async () => {
  await begin('--shutdown-delay', '300');
  gateway.signal('SIGTERM');
  await gateway.sees(/serving for 300 s more/);
  await delay(600); // later than a single Ctrl-C that arrives twice
  gateway.signal('SIGTERM');
  assert.equal(await gateway.end(20_000), { code: 0, signal: null });
});

const CLIENTS = 100;
for (const [name, words] of Object.entries({ 'a stop': [], 'a delay': ['--shutdown-delay', '1'] })) {
  test(`${name} resets no kept connection under load`, async () => {
    const url = await begin(...words);
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
    const seen: Record<string, number> = {};
    const count = (what: string): void => {
      seen[what] = (seen[what] ?? 0) + 1;
    };
    const stopped = new AbortController();
    const client = async (thinkMs: number): Promise<void> => {
      while (!stopped.signal.aborted) {
        const end = await post(`${url}/mcp/demo/tools/call`, agent);
        count(end);
        if (end === 'refused') return;
        await delay(thinkMs);
      }
    };
    const load = Array.from({ length: CLIENTS }, (_, index) => client(50 + index)); // far below the 500 ms after which an idle connection is closed
    await delay(2_000);
    gateway.signal('SIGTERM');
    assert.equal(await gateway.end(20_000), { code: 0, signal: null });
    stopped.abort();
    await Promise.all(load);
    agent.destroy();
    process.stdout.write(`${name}: ${JSON.stringify(seen)}\n`);
    assert.is(seen['reset on a kept connection'] ?? 0, 0, JSON.stringify(seen));
    assert.ok(Number(seen[200]) > 50, JSON.stringify(seen));
  });
}

/** The status, or how the request failed. A new connection may be refused, a kept one must be answered. */
function post(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json' };
    const asked = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume().once('end', () => resolve(String(response.statusCode)));
      response.once('error', () => resolve(`cut answer`));
    });
    asked.once('error', () => resolve(asked.reusedSocket ? 'reset on a kept connection' : 'refused'));
    asked.end(JSON.stringify({ name: 'fast', arguments: {} }));
  });
}

test.run();
