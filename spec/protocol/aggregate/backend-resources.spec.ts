// All templates as one server: which of them has the resources that a stream follows, and how that is looked up.
// aggregate-backends.spec.ts has all else.

import { mock } from 'node:test';
import { of, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ListField } from '../../../src/domain/mcp/mcp.ts';
import { TASKS_PER_TURN } from '../../../src/domain/time/task-scheduler.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter } from '../../helpers/time/turns.ts';
import { ADA, answered, ListingBackends, PROFILE } from '../listing-backends.ts';
import { aggregateOf, fixed } from './aggregate-of.ts';
import { twoTemplates, untilWanted, wantedUris } from './two-templates.ts';

const test = suite('resources of aggregated backends');
simulateTime(test);

test('a stream follows thousands of templates, and theirs that have its resources, over several turns', async () => {
  const follows = new TurnCounter();
  const templates = Array.from({ length: 200 }, (_, at) => `t${at}`);
  const all = new Map(
    templates.map((template) => {
      const backends = new ListingBackends({ resources: [{ uri: `${template}:1` }] });
      const changes = backends.changes.bind(backends);
      backends.changes = (...of) => {
        follows.note();
        return changes(...of);
      };
      return [template, backends];
    }),
  );
  const { aggregated } = aggregateOf(fixed(Object.fromEntries(all)));
  const resources = new Set(templates.map((template) => `${template}:1`));
  const subscription = aggregated.changes(ADA, PROFILE, { lists: new Set(), resources }).subscribe();
  await until(() => follows.all >= 2 * templates.length);
  assert.ok(follows.fullest <= TASKS_PER_TURN, `${follows.fullest} in one turn`);
  subscription.unsubscribe();
  assert.ok([...all.values()].every(({ wanted }) => wanted.length === 0));
});

test('a late change of a deleted template ends no subscription', () => {
  const { aggregated, listChanges$ } = twoTemplates();
  const received: string[] = [];
  const wanted = { lists: new Set<ListField>(['tools']), resources: new Set<string>() };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe({
    next: ({ method }) => received.push(method),
    error: ({ code }) => received.push(code),
  });
  listChanges$.next({ template: 'deleted', list: 'tools' });
  mock.timers.tick(5_000);
  assert.equal(received, ['notifications/tools/list_changed']);
  subscription.unsubscribe();
});

test('a look-up of resources that fails is repeated, and ends no stream', async () => {
  const { a, aggregated, fail } = twoTemplates();
  const faults: unknown[] = [];
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1']) };
  const error = (fault: unknown) => faults.push(fault);
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe({ error });
  fail(new Error('a fault'));
  await passTurns(30);
  assert.equal([faults, wantedUris(a)], [[], [[]]]);
  fail(undefined);
  mock.timers.tick(1_000);
  await untilWanted(a, [[], ['a:1']]);
  subscription.unsubscribe();
});

test('a look-up that keeps failing is repeated ever more rarely, and reported once', async () => {
  const { a, aggregated, fail, looks, reported } = twoTemplates();
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1']) };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  const fault = new Error('a fault');
  fail(fault);
  await passTurns(30);
  const rounds: number[] = [];
  for (let minutes = 0; minutes < 3; minutes += 1) {
    const before = looks();
    for (let seconds = 0; seconds < 60; seconds += 1) {
      mock.timers.tick(1_000);
      await passTurns(5);
    }
    rounds.push(looks() - before);
  }
  assert.equal([rounds, reported], [[5, 2, 2], [fault]]);
  fail(undefined);
  for (let seconds = 0; seconds < 30; seconds += 1) {
    mock.timers.tick(1_000);
    await passTurns(5);
  }
  await untilWanted(a, [[], ['a:1']]);
  subscription.unsubscribe();
});

test('a look-up that keeps failing is repeated a second after a list has changed', async () => {
  const { a, aggregated, fail, listChanges$, looks } = twoTemplates();
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1']) };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  const passSeconds = async (count: number) => {
    for (let seconds = 0; seconds < count; seconds += 1) {
      mock.timers.tick(1_000);
      await passTurns(5);
    }
  };
  fail(new Error('a fault'));
  await passTurns(30);
  await passSeconds(40);
  const before = looks();
  listChanges$.next({ template: 'a', list: 'resources' });
  await passSeconds(1);
  assert.is(looks() - before, 1);
  fail(undefined);
  listChanges$.next({ template: 'a', list: 'resources' });
  await passSeconds(1);
  await untilWanted(a, [[], ['a:1']]);
  subscription.unsubscribe();
});

test('any number of changes during a look-up lead to one more', async () => {
  const { a, aggregated, listChanges$ } = twoTemplates();
  const answers$ = new Subject<ReturnType<typeof answered>>();
  a.instead = answers$;
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1']) };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  await until(() => a.asked.length !== 0);
  for (let changes = 0; changes < 5; changes += 1) {
    mock.timers.tick(1_000);
    listChanges$.next({ template: 'b', list: 'resources' });
    await passTurns(5);
  }
  const during = a.asked.length;
  a.instead = of(answered({ resources: [] }));
  answers$.next(answered({ resources: [] }));
  for (let seconds = 0; seconds < 10; seconds += 1) {
    mock.timers.tick(1_000);
    await passTurns(20);
  }
  assert.is(a.asked.length, 2 * during);
  subscription.unsubscribe();
});

test('subscribes to a resource when its template is there', async () => {
  const { aggregated, a, b, listChanges$ } = twoTemplates();
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1', 'b:1']) };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  await untilWanted(a, [[], ['a:1']]);
  assert.equal(wantedUris(b), [[]]);
  b.lists = { resources: [{ uri: 'b:1' }] };
  b.handshake = { ...b.handshake, capabilities: { resources: {} } };
  for (const list of ['tools', 'resources', 'resources'] as const) listChanges$.next({ template: 'b', list });
  await untilWanted(b, [[], ['b:1']]);
  mock.timers.tick(1_000);
  listChanges$.next({ template: 'b', list: 'resources' });
  await passTurns(10);
  assert.equal(wantedUris(b), [[], ['b:1']]);
  subscription.unsubscribe();
  assert.is(listChanges$.observed, false);
});

test('looks up the owners of resources once for any number of subscribed URIs', async () => {
  const { aggregated, a, b } = twoTemplates();
  const uris = Array.from({ length: 100 }, (_, number) => `nobody:${number}`);
  const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1', 'a:2', ...uris]) };
  a.lists = { resources: [{ uri: 'a:1' }, { uri: 'a:2' }] };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  await untilWanted(a, [[], ['a:1', 'a:2']]);
  assert.equal([a.asked.length, b.asked.length], [2, 0], 'b announces no resources');
  subscription.unsubscribe();
});

test('looks up the resources of a stream over several turns, and no more of them once it has ended', async () => {
  const { aggregated, a, looks } = twoTemplates();
  const uris = Array.from({ length: 1_000 }, (_, n) => `x:${n}`);
  const wanted = { lists: new Set<ListField>(), resources: new Set(uris) };
  aggregated.changes(ADA, PROFILE, wanted).subscribe().unsubscribe();
  await passTurns(50);
  assert.equal([a.asked.length, looks() < 100], [0, true], `${looks()} of 1,000`);
});

test.run();
