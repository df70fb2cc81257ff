import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Principal, Scope } from '../../src/domain/account.ts';
import { invalidCredentials, tokenExpired } from '../../src/domain/error-catalogue.ts';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { CallerWatch, callerCheck, type Refusal } from '../../src/http/caller-check.ts';
import { suite } from '../helpers/suite.ts';
import { steadyPace, Turns } from '../helpers/turns.ts';

const test = suite('second authorization of a caller');

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

test('refuses a caller whose credentials are not valid any more', async () => {
  const fail = () => {
    throw tokenExpired();
  };
  assert.is(await codeOf(fail), 'TOKEN_EXPIRED');
  assert.is(await codeOf(() => Promise.reject(tokenExpired())), 'TOKEN_EXPIRED');
});

test('refuses no caller while the database is unavailable', async () => {
  const fail = () => {
    throw databaseUnavailable(undefined);
  };
  assert.is(await checked(fail), undefined);
  assert.is(await checked(() => Promise.reject(databaseUnavailable(undefined))), undefined);
});

test('refuses credentials that belong to another principal now', async () => {
  assert.is(await codeOf(() => ({ ...ADA, id: 'user:2' }), onDemo), 'INVALID_CREDENTIALS');
});

test('refuses a caller that lost the scope or the template', async () => {
  assert.is(await codeOf(() => ({ ...ADA, scopes: new Set() }), onDemo), 'INSUFFICIENT_PERMISSIONS');
  const narrowed = { ...ADA, templates: new Set(['other']) };
  assert.is(await codeOf(() => Promise.resolve(narrowed), onDemo), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => ({ ...ADA, templates: new Set(['demo', 'other']) }), onDemo), undefined);
});

test('refuses a caller whose templates changed, on a route of all templates', async () => {
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

const watch = suite('periodic checks of callers');
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

watch('checks every caller once a round, a part of them at a time', () => {
  const { add, log } = watching();
  for (let count = 0; count < 1_000; count += 1) add(`${count}`);
  mock.timers.tick(ROUND_MS / 10);
  assert.is(log.length, 100);
  mock.timers.tick((ROUND_MS * 9) / 10);
  assert.equal([log.length, new Set(log).size], [1_000, 1_000]);
});

watch('ends the stream of a caller that is refused, and does not check it again', () => {
  const { add, log } = watching();
  add('a', () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 3);
  assert.equal(log, ['a', 'a: INVALID_CREDENTIALS']);
});

watch('runs one check of a stream at a time', async () => {
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

watch('ignores the check of a stream that ended meanwhile', async () => {
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

watch('checks new streams after the last one ended', () => {
  const { add, log } = watching();
  add('a')();
  mock.timers.tick(ROUND_MS * 2);
  add('b');
  mock.timers.tick(ROUND_MS);
  assert.equal(log, ['b']);
});

watch('ends the many streams of one caller in several turns, each once', async () => {
  const { add, barred } = watching();
  for (let count = 0; count < 500; count += 1) add(`${count}`, () => invalidCredentials());
  mock.timers.tick(ROUND_MS * 2);
  await barred.pass(200);
  assert.equal([barred.all, barred.fullest], [500, PER_TURN]);
});

test.run();
watch.run();
