// The bounds of connection tests: their time, their number, and the end of what they opened.

import { NEVER, of } from 'rxjs';
import * as assert from 'uvu/assert';
import type { GatewayError } from '../../src/domain/errors.ts';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import type { Peer } from '../../src/domain/mcp.ts';
import { ConnectionTests } from '../../src/gateway/connection-tests.ts';
import type { Open } from '../../src/transports/opening.ts';
import type { Transport } from '../../src/transports/transport.ts';
import { endOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('connection tests');

/** Tests with an `open` of the spec, and the alarm that ends them. */
function testsWith(open: Open) {
  const alarms: { ms: number; ring: () => void }[] = [];
  const alarm = (ms: number, ring: () => void) => {
    const one = { ms, ring };
    alarms.push(one);
    return () => void alarms.splice(alarms.indexOf(one), 1);
  };
  const draft = async () => ({ id: 'draft' }) as InstanceDefinition;
  const tests = new ConnectionTests({ open, registry: { draft }, now: () => 0, alarm });
  return { tests, alarms, run: (ownerId = 'ada') => tests.run('demo', { endpoint: 'x' }, { ownerId }) };
}

const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

function transport(closed: () => Promise<void>): Transport {
  const peer: Peer = {
    ...{ era: 'legacy' as const, protocolVersion: '2025-11-25', serverName: 's', serverVersion: '1' },
    ...{ capabilities: {}, greeting: {} },
  };
  return {
    ...{ kind: 'http', peer, exchange: () => NEVER, notify: () => {}, messages$: NEVER, closed$: of() },
    close: closed,
    facts: () => ({ pid: null, stderr: [], unmatchedMessages: 0 }),
    openUpstream: async () => undefined,
  };
}

test('end after ten seconds, although the opening goes on, and close what it opens late', async () => {
  let isClosed = false;
  const late = Promise.withResolvers<Transport>();
  const { alarms, run, tests } = testsWith((_definition, _signal, opener) => {
    opener?.onStarted?.(() => ({ pid: 1, stderr: ['downloading'], unmatchedMessages: 0 }));
    return late.promise;
  });
  const running = run();
  await soon();
  assert.equal(
    alarms.map(({ ms }) => ms),
    [10_000],
  );
  alarms[0]?.ring();
  const outcome = await running;
  assert.ok(!outcome.isOk);
  assert.equal([outcome.error.code, outcome.stderr], ['BACKEND_TIMEOUT', ['downloading']]);
  let isOver = false;
  const closing = tests.close().then(() => {
    isOver = true;
  });
  await soon();
  assert.is(isOver, false);
  late.resolve(
    transport(async () => {
      isClosed = true;
    }),
  );
  await closing;
  assert.is(isClosed, true);
});

test('are bounded, of one caller and of all, until what they opened is closed', async () => {
  const closings: (() => void)[] = [];
  const { run } = testsWith(async () => transport(() => new Promise((resolve) => closings.push(resolve))));
  assert.equal(await Promise.all([run(), run()].map(endOf)), ['done', 'done']);
  assert.is(await endOf(run()), 'QUEUE_FULL');
  assert.equal(await Promise.all([run('eve'), run('eve')].map(endOf)), ['done', 'done']);
  assert.is(await endOf(run('joe')), 'QUEUE_FULL');
  for (const close of closings.splice(0)) close();
  await soon();
  assert.is(await endOf(run('joe')), 'done');
});

test('are refused and stopped when the gateway closes', async () => {
  const { run, tests } = testsWith(
    (_definition, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('called off')))),
  );
  const running = run();
  await soon();
  await tests.close();
  assert.is((await running).isOk, false);
  assert.match(String(await run().catch((error: GatewayError) => error.code)), 'SHUTTING_DOWN');
});

test.run();
