// All instances of a gateway by template: how they are added, replaced, removed, started again after a crash, and ended.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { RESTART_FORGIVEN_MS } from '../../../src/domain/time/back-off.ts';
import { answers, errorView, fails, Harness, openOwn, silent } from '../../helpers/backends/harness.ts';
import { definition, STDIO } from '../../helpers/backends/profiles.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter } from '../../helpers/time/turns.ts';

const test = suite('fleet');
let harness = new Harness();
const MANAGED = { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' };

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness();
});

test('applies a policy to few of many instances in one turn, and to none that left meanwhile', async () => {
  await harness.close();
  harness = new Harness({ perTurn: 3 });
  const refs = [];
  for (let n = 0; n < 12; n += 1) refs.push(await harness.add(`i${n}`, silent));
  await passTurns(20);
  const turns = new TurnCounter();
  for (const ref of refs) ref.setPolicy = turns.note;
  harness.fleet.templates.setPolicy('t', DEFAULT_POLICY);
  void harness.fleet.remove('t', 'i11', 0);
  await passTurns(20);
  assert.equal([turns.all, turns.fullest <= 3], [11, true]);
});

test('distinguishes an unknown template from an unknown instance', async () => {
  await harness.add('a', silent);
  const { fleet } = harness;
  for (const [asked, code] of [
    [() => fleet.templates.group('x'), 'TEMPLATE_NOT_FOUND'],
    [() => fleet.add(definition('a', { template: 'x' })), 'TEMPLATE_NOT_FOUND'],
    [() => fleet.templates.group('t').ref('b'), 'SERVER_NOT_FOUND'],
    [() => fleet.remove('t', 'b', 0), 'SERVER_NOT_FOUND'],
  ] as const) {
    assert.is(await codeOf(asked), code, String(asked));
  }
  assert.equal(
    [fleet.find('x', 'a'), fleet.find('t', 'b'), fleet.templates.has('x')],
    [undefined, undefined, false],
  );
});

test('applies a new policy to present and later instances', async () => {
  await harness.add('a', silent);
  harness.fleet.templates.setPolicy('t', { ...DEFAULT_POLICY, healthIntervalMs: 1_000 });
  await harness.add('b', silent);
  for (let second = 0; second < 3; second += 1) {
    await pass(1_000);
  }
  assert.ok(harness.asked('a', 'ping') >= 3, `a was probed ${harness.asked('a', 'ping')} times`);
  assert.ok(harness.asked('b', 'ping') >= 3, `b was probed ${harness.asked('b', 'ping')} times`);
});

test('starts an instance after all earlier ones with its endpoint have ended, whatever their ids', async () => {
  await harness.add('a', { script: silent, fields: MANAGED });
  harness.call('write');
  const oldBackend = harness.backend('a');
  void harness.fleet.remove('t', 'a', 30_000);
  const second = harness.fleet.add(definition('b', MANAGED));
  const third = harness.fleet.add(definition('b', MANAGED));
  await settled();
  assert.equal([second.state, third.state, harness.transports.has('b')], ['stopped', 'starting', false]);
  oldBackend.last.result();
  await settled();
  assert.equal([third.state, harness.transports.has('b')], ['healthy', true]);
});

test('starts an instance after the one that it replaces has ended, since both have one endpoint', async () => {
  await harness.add('a', { script: silent, fields: MANAGED });
  harness.call('write');
  const earlier = harness.backend('a');
  const successor = harness.fleet.add(definition('a', MANAGED));
  await settled();
  assert.equal([successor.state, harness.backend('a') === earlier], ['starting', true]);
  earlier.last.result();
  await settled();
  assert.equal([successor.state, harness.backend('a') === earlier], ['healthy', false]);
});

test('can be closed while an instance waits for its endpoint', async () => {
  await harness.add('a', { script: silent, fields: MANAGED });
  harness.call('write');
  const successor = harness.fleet.add(definition('a', MANAGED));
  const closed = harness.fleet.close(1_000);
  mock.timers.tick(1_000);
  await closed;
  assert.is(successor.state, 'stopped');
});

test('a watcher of an instance is called at once and at each change of its state, until it leaves', async () => {
  const ref = await harness.add('a', silent);
  const seen: string[] = [];
  const unwatch = ref.watch(() => {
    seen.push(`first ${ref.state}`);
    if (ref.state === 'draining') unwatchOther();
  });
  const unwatchOther = ref.watch(() => seen.push(`second ${ref.state}`));
  ref.drain();
  ref.resume();
  unwatch();
  ref.drain();
  assert.equal(seen, ['first healthy', 'second healthy', 'first draining', 'first healthy']);
});

test('restarts a crashed instance after half a second', async () => {
  const broken = await harness.add('a', answers());
  const other = await harness.add('b', answers());
  await crash('a');
  assert.is(other.state, 'healthy');
  await pass(499);
  assert.is(harness.ref('a'), broken);
  await pass(1);
  assert.equal([harness.eventsOf('instance.starting').length, harness.ref('a').state], [3, 'healthy']);
  assert.is(await harness.call('write').end, 'a');
  assert.is(harness.fleet.findByServerId('a'), harness.ref('a'));
});

test('restarts an instance that crashes again and again with a back-off, which is forgiven after a minute', async () => {
  await harness.add('a', answers());
  const crashAgain = async (waitMs: number): Promise<void> => {
    const broken = harness.ref('a');
    await crash('a');
    await pass(waitMs - 1);
    assert.is(harness.ref('a'), broken, `after ${waitMs - 1} ms`);
    await pass(1);
    assert.is.not(harness.ref('a'), broken, `after ${waitMs} ms`);
  };
  for (const waitMs of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) await crashAgain(waitMs);
  await pass(RESTART_FORGIVEN_MS);
  await crashAgain(500);
});

test('emits an event for a changed list of tools, and none for another list', async () => {
  await harness.add('a');
  harness.events.length = 0;
  const backend = harness.backend('a');
  backend.sendNotification('notifications/tools/list_changed');
  backend.sendNotification('notifications/prompts/list_changed');
  const [event] = harness.events;
  const fields = { atMs: event?.atMs, template: 't', instanceId: 'a', serverId: 'a' };
  assert.equal(harness.events, [{ type: 'tools.changed', ...fields }]);
});

test('a crashed instance that was drained is drained again, and one of another node stays there', async () => {
  const drained = await harness.add('a', answers());
  const there = await harness.add('b', { ...answers(), isElsewhere: true });
  drained.drain();
  await settled();
  await breakBy(() => harness.backend('a').disconnect());
  await breakBy(() => harness.backend('b').disconnect());
  await pass(500);
  assert.is.not(harness.ref('a'), drained);
  assert.is(harness.ref('a').state, 'draining');
  assert.is.not(harness.ref('b'), there);
  assert.equal([harness.ref('a').isElsewhere, harness.ref('b').isElsewhere], [false, true]);
});

test('reports the crash of an instance and its reason, without a stack', async () => {
  await harness.add('a', silent);
  await crash('a');
  const [event, ...others] = harness.eventsOf('instance.crashed');
  assert.equal(others, []);
  assert.equal(event, {
    type: 'instance.crashed',
    atMs: event?.atMs,
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    reason: 'no randomness',
  });
});

test('answers the calls of a crashed instance, which is stopped and refuses new ones', async () => {
  const ref = await harness.add('a', silent);
  const states: string[] = [];
  ref.watch((state) => states.push(state));
  const running = harness.call('write', { instanceId: 'a' });
  const backend = harness.backend('a');
  await crash('a');
  assert.equal(errorView(await running.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal([states, backend.isClosed], [['healthy', 'stopped'], true]);
  const types = harness.events
    .map(({ type }) => type)
    .filter((type) => /stopped|crashed|call.finished/.test(type));
  assert.equal(types, ['instance.stopped', 'instance.crashed', 'call.finished', 'call.finished']);
  for (const command of [() => ref.drain(), () => ref.resume(), () => ref.restart(), () => ref.leave(0)])
    command();
  assert.equal([ref.state, ref.activeCalls, ref.opened], ['stopped', 0, undefined]);
});

test('closes a session that opens while its instance crashes', async () => {
  const { promise, resolve } = Promise.withResolvers<ScriptedTransport>();
  harness.open = () => promise;
  const ref = harness.fleet.add(definition('a'));
  await settled();
  const transport = new ScriptedTransport();
  resolve(transport);
  harness.now = () => {
    throw new Error('the clock broke');
  };
  await settled();
  harness.now = () => Date.now();
  assert.equal([ref.state, transport.isClosed], ['stopped', true]);
  assert.is(harness.eventsOf('instance.crashed').length, 1);
});

test('restarts a crashed instance with a program only after the old session has closed', async () => {
  await harness.add('a', {
    script: answers(),
    fields: { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' },
  });
  const backend = harness.backend('a');
  backend.closesSlowly = true;
  await crash('a');
  await pass(5_000);
  assert.equal([harness.ref('a').state, harness.backend('a')], ['starting', backend]);
  backend.finishClosing();
  await settled();
  assert.is(harness.ref('a').state, 'healthy');
});

test('restarts an instance that crashed while its session opened only after that has closed', async () => {
  const transports: ScriptedTransport[] = [];
  harness.open = async () => {
    const transport = new ScriptedTransport({ capabilities: {} });
    transport.closesSlowly = transports.push(transport) === 1;
    return transport;
  };
  let readings = 0;
  harness.now = () => {
    readings += 1;
    if (readings === 4) throw new Error('the clock broke'); // the machine takes the session over
    return Date.now();
  };
  const ref = harness.fleet.add(definition('a', { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' }));
  await settled();
  assert.equal([ref.state, transports.map(({ isClosed }) => isClosed)], ['stopped', [true]]);
  await pass(5_000);
  assert.equal([harness.ref('a').state, transports.length], ['starting', 1]);
  transports[0]?.finishClosing();
  await settled();
  assert.equal([harness.ref('a').state, transports.length], ['healthy', 2]);
});

for (const isLost of [false, true]) {
  const when = isLost ? ' while it waited to restart the shared process' : '';
  test(`closes only after the dedicated processes of an instance that crashed${when}`, async () => {
    const ref = await harness.add('a', { script: silent, fields: STDIO });
    const backend = harness.backend('a');
    await openOwn(ref);
    const [own] = backend.conversations;
    assert.ok(own);
    own.closesSlowly = true;
    if (isLost) await breakBy(() => backend.disconnect());
    else await crash('a');
    assert.equal([ref.state, own.isClosed], ['stopped', true]);
    let isClosed = false;
    const closed = harness.fleet.close(0).then(() => {
      isClosed = true;
    });
    await settled();
    assert.is(isClosed, false);
    own.finishClosing();
    await closed;
  });
}

test('does not restart a crashed instance that was replaced or removed meanwhile', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  await crash('a');
  await crash('b');
  const successor = await harness.add('a', answers());
  await harness.fleet.remove('t', 'b', 0);
  await pass(10_000);
  assert.equal(harness.fleet.templates.group('t').refs, [successor]);
  assert.equal([successor.state, harness.eventsOf('instance.starting').length], ['healthy', 3]);
});

test('does not restart a crashed instance once the fleet is closed', async () => {
  await harness.add('a', silent);
  await crash('a');
  await harness.close();
  const before = harness.events.length;
  await pass(10_000);
  assert.is(harness.events.length, before);
});

test('closing gives instances that are already leaving no more than the grace time', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const running = harness.call('write', { instanceId: 'a', timeoutMs: 60_000 });
  const other = harness.call('read', { instanceId: 'b', timeoutMs: 60_000 });
  void harness.fleet.remove('t', 'a', 30_000);
  const closed = harness.fleet.close(10_000);
  await pass(10_000);
  await closed;
  for (const { end } of [running, other])
    assert.equal(errorView(await end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  const found = harness.eventsOf('instance.stopped').map(({ instanceId }) => instanceId);
  assert.equal(found, ['a', 'b']);
  assert.equal([harness.fleet.ownRefs(), harness.fleet.underWay], [[], 0]);
});

test('refuses new instances with SHUTTING_DOWN once it is closed', async () => {
  await harness.fleet.close(0);
  for (const template of ['t', 'x']) {
    const found = await codeOf(() => harness.fleet.add(definition('late', { template })));
    assert.is(found, 'SHUTTING_DOWN');
  }
});

test('keeps the group of a deleted template while it is in use, and uses it again when the template returns', () => {
  const { fleet } = harness;
  const group = fleet.templates.acquire('t');
  fleet.templates.delete('t');
  assert.throws(() => fleet.templates.existingGroup('t'), /No template named "t"/);
  assert.equal(
    [fleet.templates.names, fleet.templates.has('t'), fleet.templates.group('t') === group],
    [[], false, true],
  );
  fleet.templates.setPolicy('t', DEFAULT_POLICY);
  assert.equal([fleet.templates.names, fleet.templates.group('t') === group], [['t'], true]);
  fleet.templates.delete('t');
  fleet.templates.release(group);
  assert.throws(() => fleet.templates.group('t'), /No template named "t"/);
});

test('keeps the group of a deleted template until its instances have ended', async () => {
  const { fleet } = harness;
  await harness.add('a', silent);
  const forgotten: string[] = [];
  fleet.templates.forgotten$.subscribe((template) => forgotten.push(template));
  const call = harness.call('read');
  const removed = fleet.remove('t', 'a', 1_000);
  fleet.templates.delete('t');
  assert.equal(forgotten, []);
  await pass(1_000);
  await removed;
  assert.is(call.answers.length, 0);
  assert.equal(forgotten, ['t']);
});

test('sorts the names of templates only after a change', () => {
  const { fleet } = harness;
  const before = fleet.templates.names;
  fleet.templates.setPolicy('t', DEFAULT_POLICY);
  assert.is(fleet.templates.names, before);
  fleet.templates.setPolicy('a', DEFAULT_POLICY);
  assert.equal([before, fleet.templates.names], [['t'], ['a', 't']]);
  fleet.templates.delete('t');
  assert.equal(fleet.templates.names, ['a']);
  fleet.templates.setPolicy('t', DEFAULT_POLICY);
  assert.equal(fleet.templates.names, ['a', 't']);
});

test('limits the number of templates, without deleted ones', () => {
  const { fleet } = harness; // it has one template already
  for (let n = 1; n < LIMITS.templates; n += 1) fleet.templates.setPolicy(`t${n}`, DEFAULT_POLICY);
  assert.equal([fleet.templates.isFullFor('t'), fleet.templates.isFullFor('new')], [false, true]);
  fleet.templates.acquire('t');
  fleet.templates.delete('t');
  assert.equal(
    [fleet.templates.isFullFor('t'), fleet.templates.isFullFor('t1'), fleet.templates.isFullFor('new')],
    [false, false, false],
  );
});

test('replaces the strategy of a template when it changes, and otherwise keeps its memory', async () => {
  for (const id of ['a', 'b']) await harness.add(id, silent);
  const { pool } = harness.fleet.templates.group('t');
  const picks = (times: number) => Array.from({ length: times }, () => pool.pick()?.id);
  const policy = { ...DEFAULT_POLICY, strategy: 'least_connections' } as const;
  harness.fleet.templates.setPolicy('t', policy);
  harness.fleet.templates.setPolicy('t', { ...policy, strategy: 'round_robin' });
  assert.equal(picks(5), ['a', 'b', 'a', 'b', 'a']);
  harness.fleet.templates.setPolicy('t', { ...policy, strategy: 'round_robin', maxRetries: 0 });
  assert.equal(picks(1), ['b']);
  harness.random = () => 0;
  harness.fleet.templates.setPolicy('t', { ...policy, strategy: 'random' });
  assert.equal(picks(3), ['a', 'a', 'a']);
});

test('scores an instance against the best of its pool', async () => {
  const members = [await harness.add('a', answers()), await harness.add('b', fails('yes'))];
  await harness.call('write').end;
  await harness.call('write').end;
  const statuses = harness.fleet.templates.group('t').statuses();
  const scores = statuses.map(({ definition: { id }, snapshot: { score } }) => `${id} ${score}`);
  assert.equal(scores, ['a 100', 'b 80']);
  const found = members.map((member) => harness.fleet.templates.group('t').statusOf(member));
  assert.equal(found, statuses);
});

test('looks for the best of a pool once for all instances, also before one was measured', async () => {
  for (let index = 0; index < 20; index += 1) await harness.add(`i${index}`, answers());
  const group = harness.fleet.templates.group('t');
  const { candidates } = group.pool;
  let looks = 0;
  Object.defineProperty(group.pool, 'candidates', {
    get: () => {
      looks += 1;
      return candidates;
    },
  });
  assert.is(group.statuses().length, 20);
  assert.is(looks, 1);
});

test('lists an instance once that is replaced while a list is read', async () => {
  for (const id of ['a', 'b', 'c']) await harness.add(id, answers());
  const ids: string[] = [];
  for (const { definition } of harness.fleet.templates.group('t').eachStatus()) {
    ids.push(definition.id);
    if (ids.length === 1) await harness.add('a', answers());
  }
  assert.equal(ids, ['a', 'b', 'c']);
});

test.run();

/** A refused connection makes it unhealthy, and the back-off of an unhealthy instance asks for randomness. */
function crash(id: string): Promise<void> {
  harness.backend(id).onExchange = (exchange) =>
    exchange.fail(backendUnavailable('connection refused', { delivered: 'no', health: 'unreachable' }));
  return breakBy(() => harness.call('write', { instanceId: id }).end);
}

/** Crashes an instance: the back-off after the loss of a session asks for randomness, too. */
async function breakBy(cause: () => unknown): Promise<void> {
  harness.random = () => {
    harness.random = () => 0.5;
    throw new Error('no randomness');
  };
  await cause();
  await settled();
}
