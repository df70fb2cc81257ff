// One template as the endpoint sees it: its handshakes, its instances, and the tools that they list.

import { NEVER, type Observable, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { FairLruMap } from '../../../src/domain/memory/fair-lru-map.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { TemplateBackends } from '../../../src/gateway/endpoint/template-backends.ts';
import { HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('template backends');

type Parts = ConstructorParameters<typeof TemplateBackends>[1];
type Ref = { id?: string; state: string; handshake?: unknown; lastHandshake?: unknown; tools?: unknown };

/** Backends of the template `t` over these instances, with only the dependencies that these tests need. */
function over(refs: readonly Ref[], changes$: Observable<never> = NEVER) {
  const candidates = refs.filter(({ state }) => state === 'healthy');
  const fleet = {
    templates: { has: () => true, group: () => ({ refs, pool: { candidates } }) },
    listChanged$: NEVER,
  };
  const clock = { ...systemClock, now: () => 0 };
  const parts: Partial<Record<keyof Parts, unknown>> = {
    ...{ fleet, clock, cache: new FairLruMap(1024), scheduler: new TaskScheduler() },
    changeFeed: { changes: () => changes$ },
  };
  return { backends: new TemplateBackends('t', Object(parts)) };
}

test('has the handshakes of healthy instances, else the last known ones', () => {
  const other = { ...HANDSHAKE, serverInfo: { name: 'other', version: '1' } };
  const healthy = { state: 'healthy', handshake: HANDSHAKE, lastHandshake: HANDSHAKE };
  const { backends } = over([
    healthy,
    { state: 'unhealthy', handshake: other, lastHandshake: other },
    { state: 'starting' },
  ]);
  assert.equal(backends.handshakes(), [HANDSHAKE]);
  assert.equal(
    over([{ state: 'unhealthy', lastHandshake: other }, { state: 'starting' }]).backends.handshakes(),
    [other],
  );
  assert.equal(over([]).backends.handshakes(), []);
});

test('finds a tool at healthy instances first, and has the same one list its tools again', () => {
  const relisted: string[] = [];
  const listing = (state: string, title: string, mayRefresh = true) => ({
    state,
    tools: {
      find: (name: string) => (name === 'x' ? { name, title } : undefined),
      mayRefresh,
      refresh: async () => void relisted.push(title),
    },
  });
  const old = listing('unhealthy', 'old');
  const { backends } = over([old, listing('healthy', 'one'), listing('healthy', 'two')]);
  assert.equal([backends.tool('x'), backends.tool('z')], [{ name: 'x', title: 'one' }, undefined]);
  for (const name of ['x', 'z']) backends.relistTool(name);
  over([listing('healthy', 'just listed', false)]).backends.relistTool('x');
  assert.equal(relisted, ['one']);
});

test('its changes end when it is closed, and nothing follows the instances any more', () => {
  const changes$ = new Subject<never>();
  const { backends } = over([], changes$);
  const profile = { protocolVersion: '2026-07-28', capabilities: {}, clientInfo: {} };
  let ended = 0;
  const wanted = { lists: new Set<never>(), resources: new Set<string>() };
  for (const id of ['user:ada', 'user:bob'])
    backends.changes({ id }, profile, wanted).subscribe({ complete: () => (ended += 1) });
  assert.is(changes$.observed, true);
  backends.close();
  assert.equal([ended, changes$.observed], [2, false]);
});

test.run();
