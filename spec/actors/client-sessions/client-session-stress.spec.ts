// Two hundred clients at once, over instances of every kind, one of which is killed and one drained while they call. All
// clients use the same progress token: no session may get messages of another, and every call must be answered.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import {
  ASKABLE,
  ask,
  FULL,
  FULL_MODERN,
  Harness,
  HTTP,
  PLAIN,
  settled,
} from '../../helpers/failing-backend.ts';
import type { ScriptedExchange } from '../../helpers/scripted-transport.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';
import { untimedScheduler } from '../../helpers/turns.ts';

const alarm = alarmOf(untimedScheduler());

const test = suite('client session: stress');
const CLIENTS = 200;
const ROUNDS = 6;
const UPDATED = 'notifications/resources/updated';

simulateTime(test);

test('no session gets messages of another while instances are killed and drained', async () => {
  const harness = new Harness({ policy: { sessionFailover: 'auto' } });
  await harness.add('pipe', { peer: FULL, script: echo });
  await harness.add('pipe2', { peer: FULL, script: echo });
  await harness.add('http', { peer: FULL, fields: HTTP, script: echo });
  await harness.add('modern', { peer: FULL_MODERN, fields: HTTP, script: echo });
  const clients: Client[] = [];
  for (let n = 0; n < CLIENTS; n += 1) {
    clients.push(
      new Client(await harness.openSession(n % 4 === 0 ? ASKABLE : PLAIN, `owner ${n}`), String(n)),
    );
  }
  await Promise.all(clients.map((client) => client.subscribe()));
  for (let round = 0; round < ROUNDS; round += 1) {
    const calls = clients.map((client) => client.call());
    if (round === 2) harness.backend('pipe').disconnect();
    if (round === 4) harness.ref('http').drain();
    for (let step = 0; step < 10; step += 1) {
      await settled();
      mock.timers.tick(5);
    }
    await Promise.all(calls);
    for (const id of ['pipe', 'pipe2', 'http', 'modern']) tellNews(harness, id);
  }
  for (const client of clients) {
    assert.equal(client.wrong, []);
    assert.ok(client.answered + client.failed === ROUNDS, `${client.answered} and ${client.failed}`);
  }
  const answered = clients.reduce((sum, client) => sum + client.answered, 0);
  assert.ok(answered > CLIENTS * (ROUNDS - 1), `${answered} answers`); // a repeat costs budget: some calls fail
  assert.is(harness.sessions.size, CLIENTS);
  const news = clients.filter(({ session }) => session.isShared).map(({ updates }) => updates);
  assert.ok(Math.min(...news) > 0, 'every session on a shared process got its own updates');
  assert.is(harness.upstreams('http').filter(({ isClosed }) => !isClosed).length, 0);
  await harness.sessions.closeAll(0);
  await settled();
  assert.is(harness.subscribed, 0);
  await harness.close();
});

test.run();

/** One client: what it receives is checked against its name. */
class Client {
  readonly session: ClientSession;
  readonly name: string;
  readonly wrong: unknown[] = [];
  answered = 0;
  failed = 0;
  updates = 0;

  constructor(session: ClientSession, name: string) {
    this.session = session;
    this.name = name;
    session.messages$.subscribe(({ method, params }) => {
      if (method !== UPDATED || params.uri !== `x:${name}`) this.wrong.push({ method, params });
      else this.updates += 1;
    });
  }

  async subscribe(): Promise<void> {
    await ask(this.session, { method: 'resources/subscribe', params: { uri: `x:${this.name}` } }).end;
  }

  async call(): Promise<void> {
    const caller = ask(this.session, {
      method: 'tools/call',
      params: { name: 'read', arguments: { me: this.name }, _meta: { progressToken: 1 } },
    });
    const end = await caller.end;
    if (typeof end === 'string') this.answered += 1;
    else this.failed += 1;
    for (const { event } of caller.answers) {
      if (event.kind === 'notification' && event.params.me !== this.name) this.wrong.push(event);
      if (event.kind === 'result' && event.result.value !== this.name) this.wrong.push(event);
    }
  }
}

/** Answers a little later with the caller's name, after a progress notification with the same name. */
function echo(exchange: ScriptedExchange): void {
  const { method, params } = exchange.request;
  const args = params?.arguments;
  const me = isJsonObject(args) ? args.me : undefined;
  queueMicrotask(() => {
    if (!exchange.isOpen) return;
    if (method !== 'tools/call') return exchange.result({});
    alarm(10, () => {
      if (!exchange.isOpen) return;
      exchange.notify('notifications/progress', { progressToken: 1, me: me ?? '' });
      exchange.result(me);
    });
  });
}

/** The backend reports an update of every resource, a modern one in each subscription that includes the resource. */
function tellNews(harness: Harness, id: string): void {
  for (let n = 0; n < CLIENTS; n += 1) {
    const news = { uri: `x:${n}` };
    if (id === 'modern') {
      for (const exchange of harness.backend(id).open) {
        const { notifications } = exchange.request.params ?? {};
        if (JSON.stringify(notifications).includes(`"x:${n}"`)) exchange.notify(UPDATED, news);
      }
    } else {
      harness.backend(id).sendNotification(UPDATED, news);
    }
  }
}
