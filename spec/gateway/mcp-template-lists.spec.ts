// What clients of one template hear when its instances come back with other tools: those with a session and those without
// one, and nobody when an instance comes that is like the others.

import { mock } from 'node:test';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { Dispatcher } from '../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../src/actors/calls/retry.ts';
import { Fleet } from '../../src/actors/fleet.ts';
import { alarmOf } from '../../src/domain/clock.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Peer } from '../../src/domain/mcp.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { Mcp } from '../../src/gateway/mcp.ts';
import { definition } from '../helpers/failing-backend.ts';
import { PEER, ScriptedTransport } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { steadyPace } from '../helpers/turns.ts';
import { answerIn, modernRequest, openSession, type Post, pass, send } from './mcp-post.ts';

const test = suite('lists of one template');
const CHANGED = 'notifications/tools/list_changed';
const TELLS: Peer = {
  ...PEER,
  capabilities: { tools: { listChanged: true } },
  greeting: {
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'scripted', version: '1' },
  },
};

const HTTP = { transport: 'http', endpoint: 'http://one.test/mcp' } as const;

let events$: Subject<GatewayEvent>;
let fleet: Fleet;
let mcp: Mcp;
/** What instances list that are opened from now on. */
let tools: string[];
/** The latest transport of each instance. */
let backends: Map<string, ScriptedTransport>;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  events$ = new Subject();
  backends = new Map();
  const now = () => Date.now();
  const scheduler = steadyPace();
  const emit = (event: GatewayEvent) => events$.next(event);
  const parts = {
    now,
    alarm: alarmOf(scheduler),
    scheduler,
    emit,
    random: () => 0.5,
    budget: new RetryBudget(now),
    isAccepting: () => true,
  };
  fleet = new Fleet({ ...parts, open: async ({ id }) => open(id) });
  fleet.setPolicy('t', { ...DEFAULT_POLICY, sessionFailover: 'always' });
  const dispatcher = new Dispatcher({ ...parts, fleet });
  mcp = new Mcp({ ...parts, fleet, dispatcher, events$, serverInfo: { name: 'gateway', version: '1' } });
});
test.after.each(async () => {
  await Promise.all([mcp.close(0), fleet.close(0)]);
  mock.timers.reset();
});

function open(id: string): ScriptedTransport {
  const listed = tools.map((name) => ({ name }));
  const transport = new ScriptedTransport(TELLS);
  transport.onExchange = (exchange) =>
    exchange.result(exchange.request.method === 'tools/list' ? { tools: listed } : {});
  backends.set(id, transport);
  return transport;
}

/** A client of each era that listens, and lists. */
async function clients() {
  const endpoint = { mcp: mcp.endpoint };
  const answered = async (method: 'GET' | 'POST', post: Omit<Post, 'template'>) => {
    const reply = await send(endpoint, method, { template: 't', ...post });
    while (!reply.isAnswered) await pass(10);
    return reply;
  };
  const headers = await openSession(endpoint, 't');
  const notifications = { toolsListChanged: true };
  const streams = [
    await answered('GET', { headers }),
    await answered('POST', modernRequest('subscriptions/listen', { notifications })),
  ];
  const listed = async (post: Omit<Post, 'template'>) => {
    const { result } = answerIn(await answered('POST', post));
    return Object(result).tools.map(({ name }: JsonObject) => name);
  };
  return {
    notices: () =>
      streams.map(({ events }) => events.messages.filter(({ method }) => method === CHANGED).length),
    lists: async () => [
      await listed({ message: { method: 'tools/list' }, headers }),
      await listed(modernRequest('tools/list')),
    ],
  };
}

/** Instance `one`, whose tool is `old`, and clients that know it. */
async function listening() {
  tools = ['old'];
  fleet.add(definition('one', HTTP));
  await pass(10);
  const { notices, lists } = await clients();
  assert.equal(await lists(), [['old'], ['old']]);
  return { notices, lists };
}

test('notifies when the only instance comes back with other tools', async () => {
  const { notices, lists } = await listening();
  tools = ['new'];
  backends.get('one')?.lose();
  await pass(100);
  assert.equal(notices(), [0, 0], 'while nobody is there nothing is different');
  await pass(2_000);
  assert.equal(notices(), [1, 1]);
  assert.equal(await lists(), [['new'], ['new']]);
});

test('does not notify when an equal instance comes and goes', async () => {
  const { notices } = await listening();
  fleet.add(definition('two', HTTP));
  await pass(10);
  void fleet.remove('t', 'two', 0);
  const fact = { atMs: 0, template: 't', instanceId: 'two', serverId: 'two' };
  events$.next({ type: 'instance.deregistered', ...fact });
  await pass(3_000);
  assert.equal(notices(), [0, 0]);
});

test.run();
