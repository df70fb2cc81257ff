import * as assert from 'uvu/assert';
import type { Credentials } from '../../src/auth/auth.ts';
import type { Principal, Scope } from '../../src/domain/account.ts';
import { tokenExpired } from '../../src/domain/error-catalogue.ts';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { callerCheck, type Refusal } from '../../src/http/caller-check.ts';
import type { RequestState } from '../../src/http/request.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('check of a caller who is in');

const ADA: Principal = {
  ...{ id: 'user:1', kind: 'user', name: 'ada', userId: '1' },
  ...{ scopes: new Set<Scope>(['tools:call']), templates: new Set(['demo']) },
};

/** What is said of a request of Ada's when it is looked at again. */
async function checked(
  now: (credentials: Credentials) => Principal | Promise<Principal>,
  { template, before = ADA }: { readonly template?: string; readonly before?: Principal } = {},
): Promise<Refusal | 'later'> {
  const check = callerCheck(['tools:call'], { authenticate: now });
  let said: Refusal | Promise<Refusal>;
  const app = await startMiddlewares((context) => {
    const state: Partial<RequestState> = { principal: before, template };
    Object.assign(context.state, state);
    said = check(context);
    context.status = 204;
  });
  await app.ask('GET', '/', { headers: { 'x-api-key': 'k', authorization: 'a' } });
  app.close();
  return said;
}

const codeOf = async (...args: Parameters<typeof checked>) => Object(await checked(...args)).code;
const onDemo = { template: 'demo' };

test('asks with the credentials of the request', async () => {
  const asked: Credentials[] = [];
  const ask = (credentials: Credentials) => {
    asked.push(credentials);
    return ADA;
  };
  assert.is(await checked(ask), undefined);
  assert.equal(asked, [{ authorization: 'a', apiKey: 'k' }]);
});

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

test('refuses everybody else for a fault of ours, as a request would be', async () => {
  assert.is(await codeOf(() => Promise.reject(new Error('a secret'))), 'INTERNAL_ERROR');
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

test.run();
