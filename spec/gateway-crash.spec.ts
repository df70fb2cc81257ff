// Real children that die in the middle of their work: no call hangs, each is told the truth, and the dead come back by
// themselves.

import { fileURLToPath } from 'node:url';
import { filter, firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { GatewayError } from '../src/domain/errors.ts';
import { createGateway, type Gateway } from '../src/gateway.ts';
import { isRunning } from './helpers/is-running.ts';
import { suite } from './helpers/suite.ts';

const test = suite('gateway: crashes', { timeoutMs: 30_000 });
const SERVER = fileURLToPath(new URL('fixtures/stdio-server.ts', import.meta.url));
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway({ graceMs: 1_000 });
});
test.after.each(() => gateway.close());

test('survives the kill of one of two children with 200 calls under way', async () => {
  await start('a', 'b');
  const [victim, survivor] = [pidOf('a'), pidOf('b')];
  const calls = Array.from({ length: 200 }, () => outcomeOf(gateway.call('t', 'sleep', { ms: 300 })));
  assert.equal(inFlight(), [100, 100]);
  const back = healthyAgain('a');
  process.kill(victim, 'SIGKILL');
  const outcomes = await Promise.all(calls);
  const answered = outcomes.filter((outcome) => outcome === 'b').length;
  const lost = outcomes.filter((outcome) => typeof outcome === 'object');
  assert.is(answered + lost.length, 200);
  // sleep is read-only: 20 % of 200 calls and 10 were repeated on b, and every one that was still in our hands
  assert.ok(answered >= 150, `${answered} were answered`);
  for (const error of lost) assert.equal(factsOf(error), ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
  await back;
  assert.is(isRunning(victim), false);
  assert.is(pidOf('b'), survivor);
  assert.equal(inFlight(), [0, 0]);
  const { snapshot } = gateway.instance('t', 'a');
  assert.equal([snapshot.state, snapshot.restarts], ['healthy', 1]);
  assert.is((await gateway.call('t', 'echo', { text: 'x' }, { instanceId: 'a' })).instanceId, 'a');
});

test('never repeats a call that must not be repeated', async () => {
  await start('a', 'b');
  const calls = Array.from({ length: 40 }, () => outcomeOf(gateway.call('t', 'count', { ms: 300 })));
  const back = healthyAgain('a');
  process.kill(pidOf('a'), 'SIGKILL');
  const outcomes = await Promise.all(calls);
  const answered = outcomes.filter((outcome) => outcome === 'b').length;
  assert.ok(answered >= 20, `${answered} were answered`);
  for (const outcome of outcomes) {
    if (typeof outcome === 'object') {
      assert.equal(factsOf(outcome), ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
    }
  }
  await back;
  // b counted those that it answered and no other; a has forgotten
  const counted = await gateway.call('t', 'count', {}, { instanceId: 'b' });
  assert.equal(counted.result, { content: [{ type: 'text', text: String(answered + 1) }] });
});

test('gives every call to the survivor while the dead one is away', async () => {
  await start('a', 'b');
  const down = firstValueFrom(gateway.on('instance.unhealthy'));
  const back = healthyAgain('a');
  process.kill(pidOf('a'), 'SIGKILL');
  await down;
  const calls = Array.from({ length: 50 }, () => outcomeOf(gateway.call('t', 'count')));
  assert.equal([...new Set(await Promise.all(calls))], ['b']);
  await back;
  const served = await Promise.all(Array.from({ length: 4 }, () => outcomeOf(gateway.call('t', 'count'))));
  assert.equal(served.sort(), ['a', 'a', 'b', 'b']);
});

test('says that the only child is gone, and serves again when it is back', async () => {
  await start('a');
  const running = outcomeOf(gateway.call('t', 'sleep', { ms: 60_000 }));
  const back = healthyAgain('a');
  process.kill(pidOf('a'), 'SIGKILL');
  assert.equal(factsOf(await running), ['BACKEND_UNAVAILABLE', 'unknown', undefined]);
  assert.equal(factsOf(await outcomeOf(gateway.call('t', 'echo', {}))), ['NO_HEALTHY_INSTANCE', 'no', 2]);
  await back;
  assert.is(await outcomeOf(gateway.call('t', 'echo', { text: 'x' })), 'a');
});

test('runs an installed package without npx, and keeps the command as it was registered', async () => {
  const args = ['-y', '@modelcontextprotocol/server-memory@2026.8.31'];
  // Without a PATH nobody finds npx.
  const instance = { id: 'm', command: 'npx', args, env_vars: { PATH: '/nowhere' } };
  const { definition } = await gateway.register('m', instance, { waitMs: 20_000 });
  const { snapshot } = gateway.instance('m', 'm');
  assert.equal([snapshot.state, snapshot.reason], ['healthy', null]);
  assert.equal([definition.command, definition.args], ['npx', args]);
});

test('comes to an end while a dead child waits for its restart', async () => {
  await start('a');
  const down = firstValueFrom(gateway.on('instance.restarting'));
  process.kill(pidOf('a'), 'SIGKILL');
  await down;
  const starts: string[] = [];
  gateway.on('instance.starting').subscribe(({ instanceId }) => starts.push(instanceId));
  await gateway.close();
  assert.equal([starts, gateway.servers()], [[], []]);
});

test.run();

async function start(...ids: readonly string[]): Promise<void> {
  const command = { command: process.execPath, args: [SERVER] };
  await Promise.all(ids.map((id) => gateway.register('t', { id, ...command }, { waitMs: 20_000 })));
  // The first call of each, so that its tools are known.
  await Promise.all(ids.map((id) => gateway.list('t', 'tools', { instanceId: id })));
}

function pidOf(id: string): number {
  const { pid } = gateway.instance('t', id).snapshot;
  if (pid === null) throw new Error(`"${id}" has no process`);
  return pid;
}

function inFlight(): number[] {
  return gateway.servers().map(({ snapshot }) => snapshot.inFlight);
}

function healthyAgain(id: string): Promise<unknown> {
  return firstValueFrom(gateway.on('instance.healthy').pipe(filter(({ instanceId }) => instanceId === id)));
}

/** Who answered, or the error. */
function outcomeOf(call: Promise<{ readonly instanceId: string }>): Promise<string | GatewayError> {
  return call.then(
    ({ instanceId }) => instanceId,
    (thrown: GatewayError) => thrown,
  );
}

function factsOf(outcome: string | GatewayError) {
  if (typeof outcome === 'string') return outcome;
  return [outcome.code, outcome.delivered, outcome.facts.retryAfterSeconds];
}
