// The in-process transport: the conformance suite over a function, then what only functions do.

import { inspect } from 'node:util';
import * as assert from 'uvu/assert';
import { open as inProcess } from '../../../src/transports/in-process/in-process.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { everyCapability } from '../../conformance/conversation.ts';
import {
  callTool,
  instanceDefinition,
  openOptions,
  refusal,
  see,
  transportConformance,
} from '../../conformance/transport.ts';
import { objectOr } from '../../fixtures/wire.ts';
import { fixtureHandler } from '../../helpers/backends/function-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('in-process transport');

transportConformance(test, {
  name: 'in-process',
  open: async () => ({ transport: await open(fixtureHandler('function')) }),
});

test('gives the function the request with a progress token, and no token to the caller', async () => {
  const transport = await open(({ params }, { notify }) => {
    notify('notifications/progress', { progressToken: objectOr(params?._meta).progressToken as number });
    return params;
  });
  const { events } = await see(transport.exchange({ ...callTool('any', {}), wantsProgress: true }));
  assert.equal(events[0], { kind: 'notification', method: 'notifications/progress', params: {} });
  assert.equal(events[1]?.kind === 'result' && events[1].result.value, {
    name: 'any',
    arguments: {},
    _meta: { progressToken: 1 },
  });
});

test('does not pass internal fields of a request to the function', async () => {
  const transport = await open((request) => ({ request }));
  const sentTo = { template: 't', id: 'one', parts: {} };
  sentTo.parts = sentTo; // no JSON can be made of it
  const notes = { report: { sentTo }, canceller: { cancelReason: 'none' } };
  const { events } = await see(transport.exchange({ method: 'tools/list', ...notes }));
  assert.equal(events[0]?.kind === 'result' && events[0].result.value, { request: { method: 'tools/list' } });
});

test('never answers while subscribing', async () => {
  const transport = await open(() => ({}));
  let inside = true;
  let answeredInside = false;
  const finished = new Promise<void>((resolve) => {
    transport.exchange({ method: 'ping' }).subscribe({
      next: () => {
        answeredInside = inside;
      },
      complete: resolve,
    });
  });
  inside = false;
  await finished;
  assert.not(answeredInside);
});

test('never calls the function when the caller unsubscribes at once', async () => {
  let calls = 0;
  const transport = await open(() => {
    calls += 1;
  });
  transport.exchange({ method: 'ping' }).subscribe().unsubscribe();
  await see(transport.exchange({ method: 'ping' }));
  assert.is(calls, 1);
});

test('turns every thrown value into a JSON-RPC error', async () => {
  const thrown: readonly (readonly [unknown, unknown])[] = [
    [
      { code: -32602, message: 'no such tool', data: 1 },
      { code: -32602, message: 'no such tool', data: 1 },
    ],
    [Object.assign(new Error('coded'), { code: -32001 }), { code: -32001, message: 'coded' }],
    [
      Object.assign(new Error('a system error'), { code: 'ENOENT' }),
      { code: -32603, message: 'a system error' },
    ],
    [new Error('plain'), { code: -32603, message: 'plain' }],
    ['a text', { code: -32603, message: 'a text' }],
    [Object.create(null), { code: -32603, message: '[Object: null prototype] {}' }],
  ];
  for (const [value, error] of thrown) {
    const transport = await open(() => {
      throw value;
    });
    const seen = await see(transport.exchange({ method: 'ping' }));
    assert.equal(seen, { events: [{ kind: 'error', error }], end: 'completed' });
  }
});

test('a thrown value that cannot be read, or whose code is no number of JSON-RPC, is an internal error', async () => {
  const unreadable = (): never => {
    throw new Error('a getter');
  };
  const thrown: readonly (readonly [unknown, message: string])[] = [
    [Object.defineProperty({}, 'code', { get: unreadable }), 'a getter'],
    [Object.defineProperty(new Error(), 'message', { get: unreadable }), 'a getter'],
    [Object.defineProperty({ code: -32000, message: 'x' }, 'data', { get: unreadable }), 'a getter'],
    [{ [inspect.custom]: unreadable }, 'a getter'],
    [new Proxy({}, { get: () => unreadable() }), 'a getter'],
    [{ code: -32000, data: { toJSON: () => raise(Object.create(null)) } }, 'an error without a text'],
    ...[Number.NaN, Number.POSITIVE_INFINITY, 1.5].map((code) => [{ code, message: 'x' }, 'x'] as const),
  ];
  for (const [value, message] of thrown)
    for (const handler of [() => raise(value), () => Promise.reject(value)]) {
      const seen = await see((await open(handler)).exchange({ method: 'ping' }));
      assert.equal(seen, { events: [{ kind: 'error', error: { code: -32603, message } }], end: 'completed' });
    }
});

test('fails the call of a function that gives values which are not JSON', async () => {
  const handlers: readonly InProcessHandler[] = [
    () => ({ count: 1n }),
    () => Symbol('no JSON'),
    () => () => ({}),
    (_, { notify }) => notify('notifications/message', Object({ data: 1n })),
    () => {
      throw Object.assign(new Error('wrong'), { code: -32000, data: 1n });
    },
  ];
  for (const handler of handlers) {
    const { events } = await see((await open(handler)).exchange({ method: 'ping' }));
    const codes = events.map((event) => event.kind === 'error' && event.error.code);
    assert.equal(codes, [-32603]);
  }
});

test('drops a notification that comes after the answer', async () => {
  let notifyLater = (): void => {};
  const transport = await open((_, { notify }) => {
    notifyLater = () => notify('notifications/message', { level: 'info', data: 'late' });
  });
  const { events } = await see(transport.exchange({ method: 'ping' }));
  notifyLater();
  assert.is(events.length, 1);
});

test('has one conversation for all clients', async () => {
  const transport = await open(() => ({}));
  assert.is(
    await transport.openConversation({ profile: everyCapability, signal: new AbortController().signal }),
    undefined,
  );
});

test('does not open without a function, nor when the opening was aborted', async () => {
  const definition = instanceDefinition({ transport: 'in-process' });
  const handlers = new Map([[definition.serverId, fixtureHandler('function')]]);
  for (const options of [openOptions(), openOptions({ handlers, signal: AbortSignal.abort() })]) {
    await refusal(inProcess(definition, options));
  }
});

function open(handler: InProcessHandler): Promise<Transport> {
  const definition = instanceDefinition({ transport: 'in-process' });
  return inProcess(definition, openOptions({ handlers: new Map([[definition.serverId, handler]]) }));
}

function raise(value: unknown): never {
  throw value;
}

test.run();
