import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Principal, Scope } from '../../src/domain/account.ts';
import { invalidCredentials, tokenExpired } from '../../src/domain/error-catalogue.ts';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { CallerWatch, callerCheck, type Refusal } from '../../src/http/caller-check.ts';
import { suite } from '../helpers/suite.ts';
import { steadyPace, Turns } from '../helpers/turns.ts';

const test = suite('check of a caller who is in');

const ADA: Principal = {
  ...{ id: 'user:1', kind: 'user', name: 'ada', userId: '1' },
  ...{ scopes: new Set<Scope>(['tools:call']), templates: new Set(['demo']) },
};

/** The outcome of a second check of a request of Ada, who is `now` this principal. */
function checked(
  now: () => Principal | Promise<Principal>,
  { template, before = ADA }: { readonly template?: string; readonly before?: Principal } = {},
): Refusal | Promise<Refusal> {
  const state = { principal: before, template };
  return callerCheck(['tools:call'], { authenticate: now })({ req: { headers: {} }, state });
}

const codeOf = async (...args: Parameters<typeof checked>) => Object(await checked(...args)).code;
const onDemo = { template: 'demo' };

test('refuses whose credentials are void, found out at once or later', async () => {
  const fail = () => {
    throw tokenExpired();
  };
  assert.is(await codeOf(fail), 'TOKEN_EXPIRED');
  assert.is(await codeOf(() => Promise.reject(tokenExpired())), 'TOKEN_EXPIRED');
});

test('refuses nobody because of a database that does not answer', async () => {
  const fail = () => {
    throw databaseUnavailable(undefined);
  };
  assert.is(await checked(fail), undefined);
  assert.is(await checked(() => Promise.reject(databaseUnavailable(undefined))), undefined);
});

test('refuses who is somebody else by now', async () => {
  assert.is(await codeOf(() => ({ ...ADA, id: 'user:2' }), onDemo), 'INVALID_CREDENTIALS');
});

test('refuses who lost the scope or the template', async () => {
  assert.is(await codeOf(() => ({ ...ADA, scopes: new Set() }), onDemo), 'INSUFFICIENT_PERMISSIONS');
  const narrowed = { ...ADA, templates: new Set(['other']) };
  assert.is(await codeOf(() => Promise.resolve(narrowed), onDemo), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => ({ ...ADA, templates: new Set(['demo', 'other']) }), onDemo), undefined);
});

test('where all templates are meant, refuses who may use others than before', async () => {
  const having = (...templates: string[]): Principal => ({ ...ADA, templates: new Set(templates) });
  const { templates: _, ...everything } = ADA;
  const changed = (before: Principal, now: Principal) => codeOf(() => now, { before });
  assert.is(await changed(ADA, having('demo')), undefined);
  assert.is(await changed(ADA, having('demo', 'other')), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(ADA, having('other')), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(ADA, everything), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(everything, ADA), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(everything, { ...everything }), undefined);
});

// --- over and over ---------------------------------------------------------------------------------------------------

const watch = suite('watch over callers');
watch.before.each(() => mock.timers.enable({ apis: ['setInterval'] }));
watch.after.each(() => mock.timers.reset());

const ROUND_MS = 1_000;
/** Streams that may be ended in one turn of the event loop. */
const PER_TURN = 5;

function watching() {
  const watcher = new CallerWatch(ROUND_MS, steadyPace(PER_TURN));
  const log: string[] = [];
  const barred = new Turns();
  const add = (name: string, check: () => Refusal | Promise<Refusal> = () => undefined) => {
    const release = watcher.watch({
      check: () => {
        log.push(name);
        return check();
      },
      revoke: ({ code }) => {
        log.push(`${name}: ${code}`);
        barred.note();
        release();
      },
    });
    return release;
  };
  return { add, log, barred };
}

watch('asks about a part of many at a time', () => {
  const { add, log } = watching();
  for (let count = 0; count < 1_000; count += 1) add(`${count}`);
  mock.timers.tick(ROUND_MS / 10);
  assert.is(log.length, 100);
  mock.timers.tick((ROUND_MS * 9) / 10);
  assert.equal([log.length, new Set(log).size], [1_000, 1_000]);
});

watch('ends what a caller may not have any longer, and asks no more', () => {
  const { add, log } = watching();
  add('a', () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 3);
  assert.equal(log, ['a', 'a: INVALID_CREDENTIALS']);
});

watch('waits for one answer at a time', async () => {
  const { add, log } = watching();
  const answer = Promise.withResolvers<Refusal>();
  add('a', () => answer.promise);
  mock.timers.tick(ROUND_MS * 3);
  assert.equal(log, ['a']);
  answer.resolve(undefined);
  await turn();
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['a', 'a']);
});

watch('leaves alone what was let go meanwhile', async () => {
  const { add, log } = watching();
  const answer = Promise.withResolvers<Refusal>();
  const release = add('a', () => answer.promise);
  mock.timers.tick(ROUND_MS);
  release();
  answer.resolve(invalidCredentials());
  await turn();
  mock.timers.tick(ROUND_MS * 2);
  assert.equal(log, ['a']);
});

watch('begins anew after nobody was left', () => {
  const { add, log } = watching();
  add('a')();
  mock.timers.tick(ROUND_MS * 2);
  add('b');
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['b']);
});

watch('ends thousands of somebody a few in a turn, each once', async () => {
  const { add, barred } = watching();
  for (let count = 0; count < 500; count += 1) add(`${count}`, () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 2);
  await barred.pass(200);
  assert.equal([barred.all, barred.fullest], [500, PER_TURN]);
});

test.run();
watch.run();
