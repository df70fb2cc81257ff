// What a sign-in by URL costs the store when the browser is signed in: each query is CPU time that calls wait for.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { clientKeyOf } from '../../src/persistence/oauth-rows.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  allow,
  askToken,
  type Begun,
  begin,
  REDIRECT,
  register,
  startSignIn,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('queries of a sign-in');
type Registered = Awaited<ReturnType<typeof register>>;

const asked: string[] = [];
/** In which turn of the event loop each query was made. */
const turns: number[] = [];
const turn = { number: 0, isCounted: false };
const app = appFor(test, () => startSignIn({ store: countingStore() }));

test('a flow of five requests makes 25 queries, two of them for its client', async () => {
  const client = await register(app.url);
  const { browser } = await flow(client);
  asked.length = 0;
  await flow(client, browser);
  assert.ok(asked.length <= 25, `${asked.length}: ${asked.join(', ')}`);
  assert.is(asked.filter((query) => query === 'oauth.find client').length, 2);
});

test('the first token of a login makes 32 queries, and looks its user up by name once', async () => {
  const client = await register(app.url);
  asked.length = 0;
  await flow(client);
  assert.ok(asked.length <= 32, `${asked.length}: ${asked.join(', ')}`);
  assert.is(asked.filter((query) => query.startsWith('accounts.findUserByName')).length, 1);
});

test('two sign-ins at once make one query after the other, at most two in a turn of the event loop, so that calls go between', async () => {
  const client = await register(app.url);
  const { browser } = await flow(client);
  turns.length = 0;
  await Promise.all([flow(client, browser), flow(client, browser)]);
  assert.ok(turns.length > 40, `${turns.length}`);
  // The first one after a pause begins at once, in the turn before that of the next one: the two may count as one turn here.
  const counts = turns.map((number) => turns.filter((other) => other === number).length);
  assert.ok(Math.max(...counts) <= 2, counts.join(' '));
});

test('a client that was removed at another node just now gets no grant', async () => {
  const client = await register(app.url);
  const begun = await begin(app.url, client);
  const consent = await begun.browser.signIn(begun.page);
  await app.oauthStore.oauth.end({ clientKey: clientKeyOf(client.client_id) });
  const answer = await begun.browser.submit(consent, 'Allow');
  assert.is(answer.status, 400);
  const grants = await app.oauthStore.oauth.count({
    kind: 'grant',
    clientKey: clientKeyOf(client.client_id),
  });
  assert.is(grants, 0);
});

async function flow(client: Registered, known?: Begun['browser']): Promise<Begun> {
  const begun = await begin(app.url, client, known === undefined ? {} : { browser: known });
  const fields = await allow(begun);
  const { status } = await askToken(app.url, {
    ...{ grant_type: 'authorization_code', client_id: client.client_id, redirect_uri: REDIRECT },
    ...{ code: fields.get('code') ?? '', code_verifier: begun.verifier },
  });
  assert.is(status, 200);
  return begun;
}

function countingStore(): MemoryStore {
  const store = new MemoryStore();
  const counted = <T extends object>(part: T, name: string): T =>
    new Proxy(part, {
      get: (target, key) => {
        const method = Reflect.get(target, key);
        if (typeof method !== 'function') return method;
        return (...words: unknown[]) => {
          turns.push(presentTurn());
          asked.push(`${name}.${String(key)} ${typeof words[0] === 'string' ? words[0] : ''}`.trim());
          return method.apply(target, words);
        };
      },
    });
  Object.defineProperty(store, 'oauth', { value: counted(store.oauth, 'oauth') });
  Object.defineProperty(store, 'accounts', { value: counted(store.accounts, 'accounts') });
  return store;
}

function presentTurn(): number {
  if (!turn.isCounted) {
    turn.isCounted = true;
    setImmediate(() => {
      turn.number += 1;
      turn.isCounted = false;
    });
  }
  return turn.number;
}

test.run();
