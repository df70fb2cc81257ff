import * as assert from 'uvu/assert';
import type { Principal, Scope } from '../../src/domain/account.ts';
import { tokenExpired } from '../../src/domain/error-catalogue.ts';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { callerCheck, type Refusal } from '../../src/http/caller-check.ts';
import { suite } from '../helpers/suite.ts';

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
  assert.is(await changed(having('demo', 'other'), ADA), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(ADA, having('other')), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(ADA, everything), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(everything, ADA), 'INSUFFICIENT_PERMISSIONS');
  assert.is(await changed(everything, { ...everything }), undefined);
  const admin = { ...ADA, scopes: new Set<Scope>(['tools:call', 'admin']) };
  assert.is(await changed(admin, ADA), 'INSUFFICIENT_PERMISSIONS', 'of an admin, the events of all callers');
  assert.is(await changed(ADA, admin), undefined);
});

test.run();
