// Requests as promises, over functions as backends: results, whose fault an error answer was, and lists, gathered page by page from
// backends that are honest, careless or endless.

import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { finalAnswer, gatherPages, resultOf } from '../../../src/actors/calls/requests.ts';
import type { Answer, ExchangeRequest } from '../../../src/domain/exchange.ts';
import { type JsonObject, JsonText } from '../../../src/domain/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { createGateway, type Gateway } from '../../../src/gateway.ts';
import { rpcError } from '../../helpers/function-backend.ts';
import { errorOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('requests');
const WAIT = { waitMs: 5_000 };
const GET = { method: 'prompts/get', params: { name: 'greet' } };
const RESULT = {
  event: { kind: 'result', result: JsonText.ofValue({ ok: true }) },
  instanceId: 'a',
  serverId: 'a',
} as const;
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/** Registers an instance that refuses arguments and lists these prompts. */
async function refuses(id: string, list: () => JsonObject | Promise<JsonObject>, code = -32602) {
  const handler = ({ method }: { readonly method: string }) => {
    if (method === 'prompts/list') return list();
    throw rpcError(code, `${id}: who is required`);
  };
  await gateway.register('t', { id, handler }, WAIT);
}

test('resolve with the result of any method, and its instance', async () => {
  const handler = () => ({ contents: [] });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  assert.equal(await gateway.ask('t', { method: 'resources/read', params: { uri: 'a:b' } }), {
    result: { contents: [] },
    instanceId: 'a',
    serverId: 'a',
  });
});

test('blame the arguments of a prompt that the instance lists', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'greet' }] }));
  const error = await errorOf(gateway.ask('t', GET));
  assert.equal([error.code, error.facts.instanceId], ['VALIDATION_ERROR', 'a']);
  assert.equal(error.facts.items, [
    { loc: ['body', 'arguments'], msg: 'a: who is required', type: 'value_error' },
  ]);
});

test('report an unknown prompt when the instance does not list it, or lists none', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'other' }] }));
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'PROMPT_NOT_FOUND');
  await refuses('a', () => {
    throw rpcError(-32601, 'Method not found');
  });
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'PROMPT_NOT_FOUND');
});

test('believe the backend when its list cannot be had', async () => {
  await refuses('a', () => {
    throw rpcError(-32603, 'broken');
  });
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'VALIDATION_ERROR');
});

test('ask the list of the instance that answered, and of no other', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'greet' }] }));
  await refuses('b', () => ({ prompts: [] }));
  const errors = [await errorOf(gateway.ask('t', GET)), await errorOf(gateway.ask('t', GET))];
  assert.equal(errors.map(({ code, facts }) => [code, facts.instanceId]).toSorted(), [
    ['PROMPT_NOT_FOUND', 'b'],
    ['VALIDATION_ERROR', 'a'],
  ]);
});

test('request no list when the error code is enough', async () => {
  let lists = 0;
  const count = () => {
    lists += 1;
    return { prompts: [] };
  };
  await refuses('a', count, -32603);
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'TOOL_EXECUTION_FAILED');
  assert.is(lists, 0);
});

test('cancel a list on the backend when the signal aborts', async () => {
  const cancelled = Promise.withResolvers<void>();
  await gateway.register(
    't',
    {
      handler: (_, { signal }) => {
        signal.addEventListener('abort', () => cancelled.resolve());
        return new Promise(() => {});
      },
    },
    WAIT,
  );
  const controller = new AbortController();
  const reason = new Error('the caller went away');
  const list = thrownBy(gateway.list('t', 'prompts', { signal: controller.signal }));
  await turn();
  controller.abort(reason);
  assert.is(await list, reason);
  await cancelled.promise;
});

test('reject when the exchange ends without an answer', async () => {
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers);
  answers.next({ ...RESULT, event: { kind: 'notification', method: 'notifications/progress', params: {} } });
  answers.complete();
  const error = await errorOf(promise);
  assert.equal([error.code, error.delivered], ['BACKEND_UNAVAILABLE', 'unknown']);
});

test('start nothing when the signal was aborted before', async () => {
  const answers = new Subject<Answer>();
  const reason = new Error('too late');
  assert.is(await thrownBy(finalAnswer(answers, AbortSignal.abort(reason))), reason);
  assert.is(answers.observed, false);
});

test('leave no listener on the signal', async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...parameters: Parameters<typeof addEventListener>) => {
    listeners += 1;
    addEventListener.apply(signal, parameters);
  };
  signal.removeEventListener = (...parameters: Parameters<typeof removeEventListener>) => {
    listeners -= 1;
    removeEventListener.apply(signal, parameters);
  };
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers, signal);
  assert.is(listeners, 1);
  answers.next(RESULT);
  answers.complete();
  await promise;
  assert.is(listeners, 0);
});

test('fail with a GatewayError when the result is not JSON', async () => {
  const event = { kind: 'result', result: JsonText.ofBytes(Buffer.from('{"a":')) } as const;
  const parsed = async () => resultOf({ ...RESULT, event }, { method: 'tools/call' });
  const error = await errorOf(parsed());
  assert.equal([error.code, error.delivered], ['BACKEND_UNAVAILABLE', 'yes']);
});

/** Answers with one page after the other and writes down what it was asked. */
function book(...pages: unknown[]) {
  const asked: ExchangeRequest[] = [];
  const ask = async (request: ExchangeRequest): Promise<unknown> => {
    asked.push(request);
    return pages[asked.length - 1];
  };
  return { asked, ask };
}

const tool = (name: string) => ({ name });

test('follows an empty cursor, which is one like any other', async () => {
  const { ask, asked } = book({ tools: [tool('a')], nextCursor: '' }, { tools: [tool('b')] });
  assert.equal(await gatherPages('tools', ask), [tool('a'), tool('b')]);
  assert.equal(asked[1]?.params, { cursor: '' });
});

test('drops what is no object, and a field that is no list', async () => {
  const { ask } = book({ tools: [tool('a'), null, 'b', 3, [tool('c')]], nextCursor: '2' }, { tools: 'none' });
  assert.equal(await gatherPages('tools', ask), [tool('a')]);
});

test('refuses a cursor that repeats, also one from further back', async () => {
  const { ask, asked } = book(
    { tools: [tool('a')], nextCursor: 'x' },
    { tools: [tool('b')], nextCursor: 'y' },
    { tools: [tool('a')], nextCursor: 'x' },
  );
  const error = await errorOf(gatherPages('tools', ask));
  assert.is(error.code, 'BACKEND_UNAVAILABLE');
  assert.is(error.delivered, 'unknown');
  assert.match(error.message, 'its cursor repeats');
  assert.is(asked.length, 3);
});

test('ends after the last page it may ask for', async () => {
  let pages = 0;
  const ask = async () => {
    pages += 1;
    return { tools: [], nextCursor: String(pages) };
  };
  const error = await errorOf(gatherPages('tools', ask));
  assert.match(error.message, `more than ${LIMITS.listPages} pages`);
  assert.is(pages, LIMITS.listPages);
});

test('does not ask for more when it has more than enough items', async () => {
  const { ask, asked } = book({
    tools: Array.from({ length: LIMITS.listItems + 1 }, () => ({})),
    nextCursor: '2',
  });
  const error = await errorOf(gatherPages('tools', ask));
  assert.match(error.message, `more than ${LIMITS.listItems} items`);
  assert.is(asked.length, 1);
});

test('takes a page of 200,000 items without running out of stack', async () => {
  const { ask } = book({ tools: Array.from({ length: 200_000 }, (_, index) => ({ index })) });
  const items = await gatherPages('tools', ask);
  assert.is(items.length, 200_000);
  assert.equal(items.at(-1), { index: 199_999 });
});

test.run();
