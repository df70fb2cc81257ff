// What clients of one template hear when its instances come back with other tools: those with a session and those without
// one, and nobody when an instance comes that is like the others.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { Dispatcher } from '../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../src/actors/calls/retry.ts';
import { Fleet } from '../../src/actors/fleet.ts';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { alarmOf } from '../../src/domain/clock.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Peer } from '../../src/domain/mcp.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { Mcp } from '../../src/gateway/mcp.ts';
import type { McpRequest } from '../../src/protocol/endpoint-types.ts';
import { definition } from '../helpers/failing-backend.ts';
import { PEER, ScriptedTransport } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { steadyPace } from '../helpers/turns.ts';
import { parsed, RecordedReply } from '../protocol/recorded-reply.ts';

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

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    mock.timers.tick(10);
    await turn();
  }
}

async function send(method: McpRequest['method'], message: JsonObject | undefined, headers: object) {
  const reply = new RecordedReply();
  const request: McpRequest = {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...headers,
    },
    body: Buffer.from(message === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })),
    template: 't',
    principal: ANONYMOUS,
    consumeRateLimit: () => {},
  };
  await mcp.endpoint.handle(request, reply);
  while (!reply.isAnswered) await pass(10);
  return reply;
}

const noticesOn = (reply: RecordedReply) =>
  reply.events.messages.filter(({ method }) => method === CHANGED).length;
const toolsIn = ({ body, opened }: RecordedReply) => {
  const { result } = parsed(body ?? opened?.events.at(-1)?.data ?? '{}');
  return Object(result).tools.map(({ name }: JsonObject) => name);
};

/** A client of each era that listens, and lists. */
async function clients() {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'spec', version: '1' },
  };
  const { headers } = await send('POST', { method: 'initialize', params }, {});
  const session = { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] ?? '' };
  const meta = (name: string) => `io.modelcontextprotocol/${name}`;
  const _meta = { [meta('protocolVersion')]: '2026-07-28', [meta('clientCapabilities')]: {} };
  const modern = (method: string, params: JsonObject) =>
    send(
      'POST',
      { method, params: { ...params, _meta } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
    );
  const streams = [
    await send('GET', undefined, session),
    await modern('subscriptions/listen', { notifications: { toolsListChanged: true } }),
  ];
  return {
    notices: () => streams.map(noticesOn),
    lists: async () => [
      toolsIn(await send('POST', { method: 'tools/list' }, session)),
      toolsIn(await modern('tools/list', {})),
    ],
  };
}

for (const transport of ['http', 'in-process'] as const) {
  const way = transport === 'http' ? { transport, endpoint: 'http://one.test/mcp' } : { transport };

  test(`tells when the only instance comes back with other tools (${transport})`, async () => {
    tools = ['old'];
    fleet.add(definition('one', way));
    await pass(10);
    const { notices, lists } = await clients();
    assert.equal(await lists(), [['old'], ['old']]);
    tools = ['new'];
    backends.get('one')?.lose();
    await pass(100);
    assert.equal(notices(), [0, 0], 'while nobody is there nothing is different');
    await pass(2_000);
    assert.equal(notices(), [1, 1]);
    assert.equal(await lists(), [['new'], ['new']]);
  });

  test(`tells when another takes the place of the only instance (${transport})`, async () => {
    tools = ['old'];
    fleet.add(definition('one', way));
    await pass(10);
    const { notices, lists } = await clients();
    await lists();
    tools = ['new'];
    fleet.add(definition('one', way));
    await pass(3_000);
    assert.ok(
      notices().every((count) => count === 1 || count === 2),
      notices().join(),
    );
    assert.equal(await lists(), [['new'], ['new']]);
  });

  test(`says nothing when another of its kind comes and goes (${transport})`, async () => {
    tools = ['same'];
    fleet.add(definition('one', way));
    await pass(10);
    const { notices } = await clients();
    fleet.add(definition('two', way));
    await pass(10);
    void fleet.remove('t', 'two', 0);
    const fact = { atMs: 0, template: 't', instanceId: 'two', serverId: 'two' };
    events$.next({ type: 'instance.deregistered', ...fact });
    await pass(3_000);
    assert.equal(notices(), [0, 0]);
  });
}

test.run();
