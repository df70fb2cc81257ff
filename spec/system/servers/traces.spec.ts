// The spans of a whole program at a collector: from a client through the gateway to servers over stdio and over HTTP.

import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { caller } from '../../helpers/clients/caller.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import {
  CLIENT,
  type OtlpReceiver,
  type ReceivedSpan,
  SERVER,
  startOtlpReceiver,
} from '../../helpers/network/otlp-receiver.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { canFindProcesses, readProcessFile } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('traces', { timeoutMs: 90_000 });
const rawEcho = fileURLToPath(new URL('../../fixtures/raw-echo-server.ts', import.meta.url));

let collector: OtlpReceiver;
let gateway: McpHarness;
test.before.each(async () => {
  collector = await startOtlpReceiver();
});
test.after.each(async () => {
  await gateway.remove();
  await collector.close();
});

/** Starts the program; its spans are sent when it stops, unless `env` says otherwise. */
async function start(env: Record<string, string> = {}) {
  gateway = await startHarness({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector=planted-collector-key',
      OTEL_SERVICE_NAME: 'door',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=spec',
      OTEL_BSP_SCHEDULE_DELAY: '60000',
      ...env,
    },
  });
  const { url, program } = gateway;
  const send = (path: string, body: object, headers: Record<string, string> = {}) =>
    caller(url, headers)(`POST ${path}`, body);
  const stop = async () => {
    program.signal('SIGTERM');
    assert.is((await program.end()).code, 0);
  };
  return { send, stop };
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const parentOf = (letter: string) => ({ traceId: TRACE, spanId: letter.repeat(16) });
const traceparent = (letter: string) => `00-${TRACE}-${letter.repeat(16)}-01`;
const children = (of: ReceivedSpan, all: readonly ReceivedSpan[]) =>
  all
    .filter(({ parentSpanId }) => parentSpanId === of.spanId)
    .sort((one, other) => one.startMs - other.startMs);
/** The trace id and span id of a `traceparent` in a message or header. */
const continued = (text: string) => /00-([0-9a-f]{32})-([0-9a-f]{16})-01/.exec(text)?.slice(1, 3);

test('connect a client through the gateway with servers over stdio and over HTTP', async () => {
  const { send, stop } = await start();
  const { admin, program } = gateway;
  const near = { command: process.execPath, args: [rawEcho, '--era=legacy'] };
  await register(admin, 'old', [{ id: 'old-1', ...near }]);
  await register(admin, 'new', [{ id: 'new-1', ...near, args: [rawEcho, '--era=modern'] }]);
  const far = await startHttpServer({ name: 'far' });
  await register(admin, 'far', [{ id: 'far-1', endpoint: far.url }]);
  if (canFindProcesses) {
    const environments = program.descendants().map((pid) => readProcessFile(pid, 'environ'));
    assert.ok(environments.length >= 2 && !environments.some((text) => text.includes('OTEL_')));
  }

  const called: Record<string, string> = {};
  for (const [template, letter] of Object.entries({ old: 'a', new: 'b' })) {
    const headers = { traceparent: traceparent(letter), tracestate: 'vendor=1' };
    const { body } = await send(`/mcp/${template}/tools/call`, { name: 'raw', arguments: {} }, headers);
    called[template] = JSON.stringify(body);
  }
  const args = { text: 'planted-argument' };
  await send('/mcp/far/tools/call', { name: 'echo', arguments: args }, { traceparent: traceparent('c') });
  // In a session, with the context of the caller in `_meta` and the context of a proxy in the header.
  const client = await LegacyClient.open(gateway.wire, '/mcp/far');
  const headers = { traceparent: traceparent('e') };
  await client.call('fail', {}, { id: 2, meta: { traceparent: traceparent('d') }, headers });
  await send('/mcp/old/tools/call', { name: 'fail', arguments: {} }, { traceparent: traceparent('f') });
  await stop();
  await far.close();

  assert.equal(collector.requests.map(({ path, headers }) => [path, headers['x-collector']])[0], [
    '/v1/traces',
    'planted-collector-key',
  ]);
  const { 'service.name': service, 'deployment.environment.name': environment } = collector.resource();
  assert.equal([service, environment], ['door', 'spec']);
  const spans = collector.spans();
  const serverSpan = (letter: string): ReceivedSpan => {
    const found = spans.filter(({ parentSpanId }) => parentSpanId === letter.repeat(16));
    assert.equal(
      found.map(({ kind, traceId }) => [kind, traceId]),
      [[SERVER, TRACE]],
      letter,
    );
    return found[0] as ReceivedSpan;
  };

  for (const [template, letter, revision] of [
    ['old', 'a', '2025-11-25'],
    ['new', 'b', '2026-07-28'],
  ] as const) {
    const server = serverSpan(letter);
    assert.is(server.name, 'tools/call raw');
    assert.is(server.attributes['http.route'], '/mcp/:template/tools/call');
    assert.equal([server.attributes['stagedoor.attempts'], server.status], [1, 0]);
    const [attempt, ...others] = children(server, spans);
    assert.equal([attempt?.name, attempt?.kind, others], ['tools/call raw', CLIENT, []]);
    assert.equal(attempt?.attributes, {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'raw',
      'network.transport': 'pipe',
      'mcp.protocol.version': revision,
      'stagedoor.template': template,
      'stagedoor.instance': `${template}-1`,
      'stagedoor.attempt': 1,
      'stagedoor.outcome': 'result',
    });
    // The server continues below the attempt.
    assert.equal(continued(String(called[template])), [TRACE, attempt?.spanId]);
    assert.match(String(called[template]), 'vendor=1');
    const [outer, inner] = [server, attempt as ReceivedSpan];
    assert.ok(outer.startMs <= inner.startMs && inner.endMs <= outer.endMs, 'one lies within the other');
  }

  const overHttp = serverSpan('c');
  const [attempt] = children(overHttp, spans);
  const [post, ...others] = children(attempt as ReceivedSpan, spans);
  assert.equal([post?.name, post?.kind, others], ['POST', CLIENT, []]);
  assert.equal(post?.attributes['http.response.status_code'], 200);
  const received = far.requests.find(({ body }) => body.includes('planted-argument'));
  assert.equal(continued(String(received?.headers.traceparent)), [TRACE, post?.spanId]);
  assert.equal(continued(String(received?.body)), [TRACE, attempt?.spanId]);

  // `_meta` names the parent; the header becomes a link.
  const inSession = serverSpan('d');
  assert.equal(inSession.links, [parentOf('e')]);
  assert.is(inSession.attributes['jsonrpc.request.id'], '2');
  assert.match(String(inSession.attributes['mcp.session.id']), /^[0-9a-f]{12}$/);
  assert.equal([inSession.status, inSession.attributes['error.type']], [2, 'tool_error']);
  const refused = serverSpan('f');
  assert.equal([refused.status, refused.attributes['error.type']], [2, '-32000']);
  const [failed] = children(refused, spans);
  assert.equal([failed?.status, failed?.attributes['rpc.response.status_code']], [2, '-32000']);

  const sent = collector.requests.map(({ body }) => String(body)).join('');
  assert.not.match(sent, /planted-argument/);
  assert.ok(!sent.includes(client.sessionId.slice(0, 12)));
  const shown = program.out + program.err;
  assert.match(shown, new RegExp(`"trace_id":"${TRACE}"`));
  assert.not.match(shown, 'planted');
});

test('are sent as protobuf by default, and an unreachable collector delays neither calls nor the stop', async () => {
  const { send, stop } = await start({ OTEL_EXPORTER_OTLP_PROTOCOL: '' });
  await send('/mcp/none/tools/call', { name: 'x' });
  await stop();
  const [first] = collector.requests;
  assert.is(first?.headers['content-type'], 'application/x-protobuf');
  assert.ok(first?.body.includes('tools/call x'));
  await gateway.remove();

  const away = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  await away.send('/mcp/none/tools/call', { name: 'x' });
  const before = performance.now();
  await away.stop();
  assert.ok(performance.now() - before < 10_000);
});

test.run();
