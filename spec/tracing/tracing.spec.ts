// @own-process: a tracer provider is registered for the whole process.
// An embedding program that traces itself: its provider gets the spans of the gateway, below its own, and nothing of OpenTelemetry
// is loaded by a gateway in a program without one. A collector and real servers: spec/system/servers/traces.spec.ts.

import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:http';
import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  SpanKind,
  trace,
} from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/calls/exchange.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { startOtlp } from '../../src/tracing/otlp.ts';
import { readTrace, traceFields } from '../../src/tracing/spans.ts';
import { namesCollector, Tracing } from '../../src/tracing/tracing.ts';
import { modern } from '../helpers/clients/mcp-messages.ts';
import { until } from '../helpers/eventually.ts';
import { startApp } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('traces of an embedding program');
const exporter = new InMemorySpanExporter();
test.before.each(() => {
  exporter.reset();
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
});
test.after.each(() => {
  trace.disable();
  context.disable();
});

test('attempts of calls are below the span of the program, and functions get the context', async () => {
  context.setGlobalContextManager(contexts());
  await using gateway = await createGateway();
  const seen = await addInstance(gateway);
  exporter.reset();
  await trace.getTracer('program').startActiveSpan('work', async (work) => {
    await gateway.call('demo', 'one', { secret: 'planted' });
    work.end();
  });
  const [attempt, work] = exporter.getFinishedSpans();
  assert.equal([attempt?.name, attempt?.kind, work?.name], ['tools/call one', SpanKind.CLIENT, 'work']);
  assert.is(attempt?.parentSpanContext?.spanId, work?.spanContext().spanId);
  assert.equal(attempt?.attributes['network.transport'], undefined);
  const { traceId, spanId } = attempt?.spanContext() ?? {};
  assert.is(seen[0], `00-${traceId}-${spanId}-01`);
  assert.not.ok(
    JSON.stringify(exporter.getFinishedSpans().map((span) => span.attributes)).includes('planted'),
  );
});

test('spans of requests other than calls have the name of the route, and liveness probes have none', async () => {
  const app = await startApp();
  await app.ask('GET', '/livez');
  await app.ask('GET', '/servers?include_health=true');
  await app.ask('GET', '/nowhere');
  await app.ask('POST', '/mcp/none/tools/call', { body: { name: 'x' } });
  await app.ask('POST', '/mcp/none/tools/call', { body: { name: 'sd_0123456789abcdef_a-key' } });
  await until(() => exporter.getFinishedSpans().length >= 4);
  assert.equal(
    exporter.getFinishedSpans().map(({ name, kind, status, attributes }) => {
      return [name, kind, status.code, attributes['http.response.status_code'], attributes['error.type']];
    }),
    [
      ['GET /servers', SpanKind.SERVER, 0, 200, undefined],
      ['GET', SpanKind.SERVER, 0, 404, undefined],
      ['tools/call x', SpanKind.SERVER, 2, 404, 'TEMPLATE_NOT_FOUND'],
      ['tools/call sd_0123456789abcdef_...', SpanKind.SERVER, 2, 404, 'TEMPLATE_NOT_FOUND'],
    ],
  );
  assert.not.match(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes)), 'a-key');
  await app.close();
});

test('a request whose state or cursor is refused has a span and an outcome, too', async () => {
  const app = await startApp({ logLevel: 'info' });
  await app.serve('demo', 'one');
  exporter.reset();
  for (const [method, params] of [
    ['tools/call', { name: 'name', requestState: 'damaged' }],
    ['tools/list', { cursor: 'damaged' }],
  ] as const) {
    const answer = await app.ask('POST', '/mcp/demo', modern(method, params));
    assert.equal([answer.status, Object(answer.body).error?.code], [200, -32_602]);
  }
  await until(() => exporter.getFinishedSpans().length === 2);
  assert.equal(
    exporter.getFinishedSpans().map(({ name, attributes }) => [name, attributes['stagedoor.outcome']]),
    [
      ['tools/call name', 'failed'],
      ['tools/list', 'failed'],
    ],
  );
  const lines = app.log.filter(({ msg }) => msg === 'request');
  assert.equal(
    lines.map(({ rpc_method, rpc_error, outcome }) => [rpc_method, rpc_error, outcome]),
    [
      ['tools/call', -32_602, 'failed'],
      ['tools/list', -32_602, 'failed'],
    ],
  );
  await app.close();
});

test('there are no spans as soon as there is no provider', async () => {
  const door = new Tracing();
  await door.ready();
  assert.ok(door.spans !== undefined);
  trace.disable();
  assert.is(door.spans, undefined);
});

test('reads trace contexts in the form of W3C, and no others', () => {
  const [id, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  for (const good of [`00-${id}-${parent}-01`, `00-${id}-${parent}-00`, `cc-${id}-${parent}-03-what-later`]) {
    const read = readTrace(good, 'a=1,b=2');
    assert.equal([read?.traceId, read?.spanId, read?.isRemote], [id, parent, true], good);
    const sampled = good.startsWith('00-') ? good.slice(-2) : '01';
    const fields = read && traceFields(read);
    assert.equal(fields, { traceparent: `00-${id}-${parent}-${sampled}`, tracestate: 'a=1,b=2' });
  }
  for (const bad of [
    ...[undefined, 7, '', 'x', `ff-${id}-${parent}-01`, `00-${id}-${parent}-01-more`],
    ...[
      `00-${'0'.repeat(32)}-${parent}-01`,
      `00-${id}-${'0'.repeat(16)}-01`,
      `00-${id.toUpperCase()}-${parent}-01`,
    ],
    `cc-${id}-${parent}-01-${'x'.repeat(1_000)}`,
  ])
    assert.is(readTrace(bad), undefined, String(bad));
  assert.is(readTrace(`00-${id}-${parent}-01`, 'x'.repeat(513))?.traceState, undefined);
});

test('are exported if the standard variables name a collector and do not disable it', () => {
  const named = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
  assert.ok(namesCollector(named));
  assert.ok(namesCollector({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }));
  for (const off of [
    ...[{}, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://a' }],
    ...[
      { ...named, OTEL_SDK_DISABLED: 'TRUE' },
      { ...named, OTEL_TRACES_EXPORTER: 'none' },
    ],
  ])
    assert.is(namesCollector(off), false, JSON.stringify(off));
});

test('are all sampled, with a warning for each invalid setting, when the sampler is invalid', async () => {
  const sampled: boolean[] = [];
  const warnings: unknown[] = [];
  for (const [name, argument, protocol] of [
    ['traceidratio', 'half'],
    ['parentbased_traceidratio', '1.5'],
    ['none', ''],
    ['traceidratio', '0'],
    ['other', '', 'grpc'],
  ]) {
    trace.disable();
    const sampler = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument };
    const variables = { ...sampler, OTEL_EXPORTER_OTLP_PROTOCOL: protocol };
    const otlp = await startOtlp(variables, { warn: (fields: unknown) => void warnings.push(fields) });
    sampled.push(trace.getTracer('program').startSpan('work').isRecording());
    await otlp?.close();
  }
  assert.equal(sampled, [true, true, true, false, true]);
  assert.equal(warnings, [
    { reason: 'OTEL_TRACES_SAMPLER_ARG=half is not a number from 0 to 1; 1 is used' },
    { reason: 'OTEL_TRACES_SAMPLER_ARG=1.5 is not a number from 0 to 1; 1 is used' },
    { reason: 'OTEL_TRACES_SAMPLER=none is unknown; parentbased_always_on is used' },
    { reason: 'the protocol grpc is not supported; http/protobuf is used' },
    { reason: 'OTEL_TRACES_SAMPLER=other is unknown; parentbased_always_on is used' },
  ]);
});

test('a collector that refuses the last spans is one warning, and no error of the stop', async () => {
  trace.disable();
  const collector = createServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${Object(collector.address()).port}`;
  const warnings: unknown[] = [];
  const otlp = await startOtlp({}, { warn: (fields: unknown) => void warnings.push(fields) });
  trace.getTracer('program').startSpan('work').end();
  await otlp?.close();
  assert.equal(warnings, [{ reason: 'Not Found' }]);
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  collector.close();
});

test('a collector whose address is not a URL is a warning that quotes it', async () => {
  trace.disable();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = 'no url';
  const reasons: string[] = [];
  const otlp = await startOtlp(
    {},
    { warn: ({ reason }: { reason?: string }) => void reasons.push(`${reason}`) },
  );
  assert.is(await startOtlp({}, { warn: () => {} }), undefined, 'there is a provider already');
  await otlp?.close();
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  assert.is(reasons.length, 1);
  assert.match(reasons[0] ?? '', "'no url'");
  const warn = ({ reason }: { reason?: string }) => void reasons.push(`${reason}`);
  const all = ['collector:4318', 'grpc://collector:4317', 'user:secret@collector:4318', 'https:collector'];
  for (const OTEL_EXPORTER_OTLP_ENDPOINT of all)
    await (await startOtlp({ OTEL_EXPORTER_OTLP_ENDPOINT }, { warn }))?.close();
  assert.equal(reasons.slice(1), [
    'the collector "collector:4318" has no scheme: write http://collector:4318',
  ]);
});

/** Adds an instance with the tool `one`. The result gets the `traceparent` of each call. */
async function addInstance(gateway: Gateway): Promise<unknown[]> {
  const seen: unknown[] = [];
  const handler = ({ method, params }: ExchangeRequest) => {
    if (method === 'tools/call') seen.push(Object(params?._meta).traceparent);
    return method === 'tools/list' ? { tools: [{ name: 'one', inputSchema: {} }] } : { content: [] };
  };
  await gateway.register('demo', { id: 'a', handler }, { waitMs: 5_000 });
  return seen;
}

/** As in the SDK for Node. */
function contexts(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (entered, run, thisArg, ...args) => storage.run(entered, () => run.call(thisArg, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

test.run();
