// The subscription of sessions at a modern backend: when it is replaced, and when the backend has acknowledged it.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Listening } from '../../../src/actors/client-sessions/bindings.ts';
import type { ServerMessage } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';

const alarm = alarmOf(steadyPace());

const test = suite('client session: listening');
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';
let backend = new ScriptedTransport();
let heard: ServerMessage[] = [];
const wanted = new Set<string>();
let listening: Listening | undefined;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  backend = new ScriptedTransport();
  heard = [];
  wanted.clear();
});
test.after.each(() => {
  listening?.close();
  mock.timers.reset();
});

test('makes one subscription of simultaneous changes, and keeps the old one until the new one is acknowledged', async () => {
  await listen();
  const [first] = backend.exchanges;
  first?.notify(ACKNOWLEDGED);
  for (const uri of ['x:1', 'x:2']) {
    wanted.add(uri);
    listening?.refresh();
  }
  await turn();
  assert.is(backend.exchanges.length, 2);
  first?.notify(UPDATED, { uri: 'x:0' });
  assert.is(first?.isOpen, true);
  backend.last.notify(ACKNOWLEDGED);
  assert.is(first?.isCancelled, true);
  backend.last.notify(UPDATED, { uri: 'x:1' });
  assert.equal(
    heard.map(({ params }) => params.uri),
    ['x:0', 'x:1'],
  );
});

test('resolves when the backend has acknowledged the latest subscription, or does not', async () => {
  await listen();
  const [first] = backend.exchanges;
  assert.is(await hasAgreed(), false);
  wanted.add('x:1');
  listening?.refresh();
  first?.notify(ACKNOWLEDGED);
  assert.is(await hasAgreed(), false); // to the old question
  backend.last.notify(ACKNOWLEDGED);
  assert.is(await hasAgreed(), true);
  for (const end of [() => backend.last.refuse(-32601), () => mock.timers.tick(2_000)]) {
    await refresh();
    assert.is(await hasAgreed(), false);
    const acknowledged = listening?.acknowledged;
    end();
    await acknowledged;
  }
});

test('waits for the new question when the backend ends the old one because of it', async () => {
  await listen();
  const [first] = backend.exchanges;
  first?.notify(ACKNOWLEDGED);
  wanted.add('x:1');
  await refresh();
  let hasEnded = false;
  void listening?.acknowledged?.then(() => {
    hasEnded = true;
  });
  first?.result({});
  await turn();
  assert.is(hasEnded, false);
  backend.last.notify(ACKNOWLEDGED);
  await turn();
  assert.is(hasEnded, true);
});

test.run();

async function listen(): Promise<void> {
  listening = new Listening({
    ref: { listen: (request) => backend.exchange(request) },
    peer: { capabilities: { tools: { listChanged: true } } },
    uris: wanted,
    alarm,
    deliver: (message) => heard.push(message),
  });
  await turn();
}

/** Within this moment. */
async function hasAgreed(): Promise<boolean> {
  let isAgreed = false;
  void (async () => {
    await listening?.acknowledged;
    isAgreed = true;
  })();
  await turn();
  await turn();
  return isAgreed;
}

async function refresh(): Promise<void> {
  listening?.refresh();
  await turn();
}

/** Microtasks are done. */
async function turn(): Promise<void> {
  await Promise.resolve();
}
