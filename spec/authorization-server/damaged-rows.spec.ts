// A damaged row of the table `oauth` hides no others, and can be removed.

import * as assert from 'uvu/assert';
import { createGateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { clientKeyOf, oauthKey } from '../../src/persistence/oauth-rows.ts';
import type { OAuthKind } from '../../src/persistence/oauth-store.ts';
import { appFor } from '../helpers/http/app.ts';
import { register, startSignIn, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('damaged rows of sign-ins and connections');

const warned: string[] = [];
const store = new MemoryStore();
const app = appFor(test, async () => {
  const address = { isPublic: false, issuer: 'http://127.0.0.1' };
  const backendAccounts = { address, warn: (line: string) => void warned.push(line) };
  const gateway = await createGateway({ store, backendAccounts });
  return startSignIn({ store, gateway });
});

const ID = '1b671a64-40d5-491e-99b0-da01ff1f3341';
const DAMAGED = '{"secret":"hush"}';
const createdAt = '2026-11-26T00:00:00.000Z';
const expiresAt = '2096-11-26T00:00:00.000Z';
const left = (kind: OAuthKind, key: string) => store.oauth.find(kind, [key]);
const asAdmin = (method: string, path: string) => app.as(app.admin, method, path);
const ownerOf = async () => (await store.accounts.findUserByName('ada'))?.id ?? '';
const lineOf = (kind: OAuthKind, key: string, id = '') =>
  `the row "${kind} ${key}${id}" of the table oauth is damaged: correct it, or delete it`;

test('a damaged connection is left out of the list, and an admin disconnects it by its key', async () => {
  const owner = await ownerOf();
  const value = {
    ...{ owner, issuer: 'https://login.example', resource: 'https://mcp.example', scopes: [] },
    ...{ endpoint: 'https://mcp.example/mcp', clientId: 'gateway', accessToken: 'hush' },
  };
  const row = { kind: 'connection', createdAt, expiresAt, userId: owner } as const;
  const [good, bad] = [oauthKey('connection', 'good'), oauthKey('connection', 'bad')];
  await store.oauth.save({ ...row, key: good, value: JSON.stringify(value) });
  await store.oauth.save({ ...row, key: bad, value: DAMAGED });
  const { status, text } = await asAdmin('GET', '/gateway/connections');
  assert.equal([status, JSON.parse(text).length, JSON.parse(text)[0].id], [200, 1, good.slice(0, 32)]);
  assert.equal(warned, [lineOf('connection', bad)]);
  assert.is((await asAdmin('DELETE', `/gateway/connections/${bad.slice(0, 32)}`)).status, 204);
  assert.equal(await left('connection', bad), []);
  assert.is((await asAdmin('DELETE', `/gateway/connections/${good.slice(0, 32)}`)).status, 204);
});

test('a damaged grant is left out of the list, and ended by its id', async () => {
  const client = await register(app.url);
  await tokensOf(app.url, client);
  const row = { kind: 'grant', createdAt, expiresAt, userId: await ownerOf(), grantId: ID } as const;
  await store.oauth.save({ ...row, key: oauthKey('grant', ID), value: DAMAGED });
  const { status, text } = await asAdmin('GET', '/auth/grants');
  assert.equal([status, JSON.parse(text).length], [200, 1]);
  assert.is((await asAdmin('DELETE', `/auth/grants/${ID}`)).status, 204);
  assert.equal(await left('grant', oauthKey('grant', ID)), []);
  assert.is((await asAdmin('DELETE', `/auth/grants/${ID}`)).status, 404);
});

test('a damaged client is left out of the list with a warning, and removed by its id', async () => {
  const key = clientKeyOf(ID);
  const before = app.warnings.length;
  for (const [value, id] of [
    [DAMAGED, ''],
    [JSON.stringify({ secret: 'hush', id: 'of another' }), ''],
    [JSON.stringify({ secret: 'hush', id: ID }), `, id ${ID}`],
  ] as const) {
    await store.oauth.save({ kind: 'client', key, clientKey: key, createdAt, value });
    const { status, text } = await asAdmin('GET', '/auth/clients');
    assert.equal([status, JSON.parse(text).length], [200, 1]);
    assert.equal(app.warnings.at(-1), [lineOf('client', key, id)]);
  }
  assert.is(app.warnings.length - before, 3);
  assert.is((await asAdmin('DELETE', `/auth/clients/${ID}`)).status, 204);
  assert.equal(await left('client', key), []);
});

test.run();
