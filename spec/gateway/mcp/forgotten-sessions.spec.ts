// A server that forgets its sessions, and says so with one of the statuses that servers use: what the next call gives at each door.

import * as assert from 'uvu/assert';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Answer, result, serving } from '../../transports/scripted-server.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('sessions that a server forgot');
let app: AppFixture;
let gateway: Gateway;
let server: RawServer;
let live: Set<string>;
let opened: number;
let calls: number;
/** The answer to everything but a handshake in an unknown session. */
let unknown: Answer;
/** The answer to a call in a known one. */
let onCall: Answer | undefined;
test.before.each(async () => {
  live = new Set();
  opened = 0;
  calls = 0;
  onCall = undefined;
  app = await startApp();
  ({ gateway } = app);
  const known =
    (answer: Answer): Answer =>
    (response, asked) =>
      (live.has(String(asked.request.headers['mcp-session-id'])) ? answer : unknown)(response, asked);
  server = await startRawServer(
    serving({
      initialize: (response, asked) => {
        opened += 1;
        live.add(`s${opened}`);
        const greeting = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
        result(greeting, { 'mcp-session-id': `s${opened}` })(response, asked);
      },
      ping: known(result({})),
      'tools/list': known(result({ tools: [{ name: 'write', inputSchema: { type: 'object' } }] })),
      'tools/call': known((response, asked) => {
        calls += 1;
        return (onCall ?? result({ content: [] }))(response, asked);
      }),
    }),
  );
  await gateway.register('t', { id: 'a', endpoint: server.url }, { waitMs: 20_000 });
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  await app.close();
  await server.close();
});

const text =
  (status: number): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'text/plain' }).end('no such session');
const foreign =
  (status: number, code: number): Answer =>
  (response) => {
    const body = { jsonrpc: '2.0', id: null, error: { code, message: 'no such session' } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } });

/** The outcome at both routes for calls over REST. */
async function restOutcomes(): Promise<readonly string[]> {
  const first = await app.ask('POST', '/mcp/t/tools/call', { body: call('write').params });
  const flat = { tool_name: 'write', server_id: 'a', arguments: {} };
  const second = await app.ask('POST', '/tools/call', { body: flat });
  return [first, second].map(({ status, body }) =>
    status === 200 ? 'result' : `${status} ${body.backend_status ?? ''} ${body.detail}`,
  );
}

async function outcome(post: Parameters<typeof postTo>[1]): Promise<string> {
  const { status, answer } = await postTo(gateway, post);
  const { message, data } = Object(answer.error) as JsonObject;
  return answer.result === undefined ? `${status} ${Object(data).status ?? ''} ${message}` : 'result';
}

const FORMS: Readonly<Record<string, Answer>> = {
  '404 with text': text(404),
  '404 with an error': foreign(404, -32001),
  '400 with text': text(400),
  '400 with an error': foreign(400, -32000),
  '401': text(401),
  '401 with an error': foreign(401, -32001),
  '403': text(403),
  '410': text(410),
  '429': text(429),
};

for (const [name, form] of Object.entries(FORMS)) {
  test(`no call that was not carried out fails: ${name}`, async () => {
    unknown = form;
    const own = await openSession(gateway, 't');
    const all = await openSession(gateway, undefined);
    const doors = {
      own: { template: 't', message: call('write'), headers: own },
      all: { template: undefined, message: call('t__write'), headers: all },
      modern: { template: 't', ...modernRequest('tools/call', call('write').params) },
      modernAll: { template: undefined, ...modernRequest('tools/call', call('t__write').params) },
    };
    for (const post of Object.values(doors)) assert.is(await outcome(post), 'result');
    assert.equal(await restOutcomes(), ['result', 'result']);
    live.clear();
    calls = 0;
    assert.is(await outcome(doors.all), 'result', 'the aggregate repeats the call');
    assert.is(await outcome(doors.modern), 'result');
    live.clear();
    assert.is(await outcome(doors.modernAll), 'result');
    live.clear();
    assert.equal(await restOutcomes(), ['result', 'result']);
    assert.match(await outcome(doors.own), /^404 /, 'its client initializes again');
    assert.is(calls, 5);
    assert.is(await outcome({ ...doors.own, headers: await openSession(gateway, 't') }), 'result');
  });
}

test('a call that is sent again in a new session counts as one attempt', async () => {
  unknown = text(404);
  live.clear();
  const seen: GatewayEvent[] = [];
  const subscription = gateway.events$.subscribe((event) => seen.push(event));
  assert.equal(await restOutcomes(), ['result', 'result']);
  subscription.unsubscribe();
  const ofCalls = seen.filter(({ type }) => /^(call|attempt)\./.test(type));
  const [lost, next] = ofCalls.filter(({ type }) => type === 'call.finished');
  assert.equal([ofCalls.length, Object(lost).attempt, Object(next).attempt, calls], [4, 1, 1, 2]);
});

for (const status of [400, 401, 403, 410, 429]) {
  test(`a ${status} to one call is its answer, and the session continues`, async () => {
    const doors = {
      own: { template: 't', message: call('write'), headers: await openSession(gateway, 't') },
      modern: { template: 't', ...modernRequest('tools/call', call('write').params) },
      modernAll: { template: undefined, ...modernRequest('tools/call', call('t__write').params) },
    };
    const posts = Object.values(doors);
    for (const post of posts) assert.is(await outcome(post), 'result');
    assert.equal(await restOutcomes(), ['result', 'result']);
    const sessions = opened;
    onCall = text(status);
    for (const post of posts) assert.match(await outcome(post), `${status} The server answered ${status}`);
    for (const rest of await restOutcomes()) assert.match(rest, `${status} The server answered ${status}`);
    assert.equal([calls, opened], [10, sessions]);
    onCall = undefined;
    for (const post of posts) assert.is(await outcome(post), 'result');
  });
}

test.run();
