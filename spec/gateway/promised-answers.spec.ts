// Answers as promises, with functions as backends: results, the causes of error answers, and lists that are gathered page by
// page from correct, careless and endless backends.

import { setImmediate as turn } from 'node:timers/promises';
import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest, SourcedEvent } from '../../src/domain/calls/exchange.ts';
import { type JsonObject, JsonText } from '../../src/domain/json/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { gatherPages, MAX_LIST_ITEMS } from '../../src/domain/lists/list-pages.ts';
import { ListReader } from '../../src/domain/lists/list-reader.ts';
import { MAX_LIST_VALUES } from '../../src/domain/memory/held-bytes.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { PromisedAnswers, type RequestOptions } from '../../src/gateway/promised-answers.ts';
import type { InProcessHandler } from '../../src/transports/open-options.ts';
import { rpcError } from '../helpers/backends/function-backend.ts';
import { until } from '../helpers/eventually.ts';
import { errorOf, thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { turnsOf, untimedScheduler } from '../helpers/time/turns.ts';

const test = suite('promised answers');
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

/** Begins again, as a process with 1 GiB. */
async function startSmall(): Promise<void> {
  await gateway.close({ graceMs: 0 });
  gateway = await createGateway({ memoryBytes: 2 ** 30 });
}

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

test('count lists as long as they are used, and refuse a caller with one that asks for another', async () => {
  await startSmall();
  let content = 1;
  const numbers = () => Array(50_000).fill(content);
  const handler = () => ({
    tools: Array.from({ length: 10 }, (_, index) => ({ name: `wide${index}`, list: numbers() })),
  });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const list = (caller: string) => gateway.list('t', 'tools', { callerId: caller });
  const [begun, used] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const first = gateway.internals.promisedAnswers.useList('t', 'tools', { callerId: 'a' }, ({ items }) => {
    begun.resolve();
    return used.promise.then((text) => `${text} ${items.length}`);
  });
  await begun.promise;
  assert.is((await list('a')).items.length, 10, 'an equal list shares its items');
  content = 2;
  assert.is((await errorOf(list('a'))).code, 'QUEUE_FULL');
  assert.is((await list('b')).items.length, 10);
  used.resolve('used');
  assert.is(await first, 'used 10');
  assert.is((await list('a')).items.length, 10);
});

test('count pages that wait to be parsed for their instance', async () => {
  await startSmall();
  const text = 'x'.repeat(7_000_000);
  const handler = () => ({ prompts: [{ name: 'large', text }] });
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const wait = Promise.withResolvers<void>();
  gateway.internals.scheduler.turn = () => wait.promise;
  const refused: unknown[] = [];
  const lists = Array.from({ length: 12 }, () =>
    gateway.list('t', 'prompts').catch(({ code }) => refused.push(code)),
  );
  await until(() => refused.length >= 3);
  wait.resolve();
  await Promise.all(lists);
  assert.equal(refused, Array(3).fill('BACKEND_UNAVAILABLE')); // 64 MiB have room for nine
});

test('fail with VALIDATION_ERROR when the instance refuses the arguments of a prompt that it lists', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'greet' }] }));
  const error = await errorOf(gateway.ask('t', GET));
  assert.equal([error.code, error.facts.instanceId], ['VALIDATION_ERROR', 'a']);
  assert.equal(error.facts.items, [
    { loc: ['body', 'arguments'], msg: 'a: who is required', type: 'value_error' },
  ]);
});

test('fail with PROMPT_NOT_FOUND when the instance does not list the prompt, or lists none', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'other' }] }));
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'PROMPT_NOT_FOUND');
  await refuses('a', () => {
    throw rpcError(-32601, 'Method not found');
  });
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'PROMPT_NOT_FOUND');
});

test('fail with VALIDATION_ERROR when the instance refuses the arguments and fails to list its prompts', async () => {
  await refuses('a', () => {
    throw rpcError(-32603, 'broken');
  });
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'VALIDATION_ERROR');
});

test('read only the prompt list of the instance that refused the arguments', async () => {
  await refuses('a', () => ({ prompts: [{ name: 'greet' }] }));
  await refuses('b', () => ({ prompts: [] }));
  const errors = [await errorOf(gateway.ask('t', GET)), await errorOf(gateway.ask('t', GET))];
  const found = errors.map(({ code, facts }) => `${code} ${facts.instanceId}`).toSorted();
  assert.equal(found, ['PROMPT_NOT_FOUND b', 'VALIDATION_ERROR a']);
});

test('read no prompt list when the error code is not about arguments', async () => {
  let lists = 0;
  const count = () => {
    lists += 1;
    return { prompts: [] };
  };
  await refuses('a', count, -32603);
  assert.is((await errorOf(gateway.ask('t', GET))).code, 'TOOL_EXECUTION_FAILED');
  assert.is(lists, 0);
});

test('read the further pages of a list from an instance that is drained meanwhile', async () => {
  const handler: InProcessHandler = ({ method, params }) => {
    if (method !== 'prompts/list') return { tools: [] };
    if (params?.cursor !== undefined) return { prompts: [{ name: 'two' }] };
    gateway.drain('t', 'a');
    return { prompts: [{ name: 'one' }], nextCursor: 'next' };
  };
  await gateway.register('t', { id: 'a', handler }, WAIT);
  const { items } = await gateway.list('t', 'prompts');
  assert.equal(items, [{ name: 'one' }, { name: 'two' }]);
});

test('cancel a call or a list on the backend when the signal aborts', async () => {
  let cancelled = 0;
  const handler: InProcessHandler = ({ method }, { signal }) => {
    if (method === 'tools/list') return { tools: [] };
    signal.addEventListener('abort', () => (cancelled += 1));
    return new Promise(() => {});
  };
  await gateway.register('t', { handler }, WAIT);
  for (const request of [
    (options: RequestOptions) => gateway.call('t', 'held', {}, options),
    (options: RequestOptions) => gateway.list('t', 'prompts', options),
  ]) {
    const controller = new AbortController();
    const reason = new Error('the caller went away');
    const failure = thrownBy(request({ signal: controller.signal }));
    await turn();
    assert.is(gateway.stats().activeConnections, 1);
    controller.abort(reason);
    assert.is(await failure, reason);
    assert.is(gateway.stats().activeConnections, 0);
  }
  assert.is(cancelled, 2);
});

/** Asks once; the exchange consists of these events. */
function askOf(...events: readonly SourcedEvent[]) {
  const scheduler = untimedScheduler();
  const answers = new PromisedAnswers(() => of(...events), {
    scheduler,
    listReader: new ListReader({ scheduler }),
  });
  return answers.ask('t', { method: 'tools/call' });
}

test('reject when the exchange ends without an answer', async () => {
  const event = { kind: 'notification', method: 'notifications/progress', params: {} } as const;
  const error = await errorOf(askOf({ ...RESULT, event }));
  assert.equal([error.code, error.delivered], ['BACKEND_UNAVAILABLE', 'unknown']);
});

test('fail with a GatewayError when the result is not JSON', async () => {
  const event = { kind: 'result', result: JsonText.ofBytes(Buffer.from('{"a":')) } as const;
  const error = await errorOf(askOf({ ...RESULT, event }));
  assert.equal([error.code, error.delivered], ['BACKEND_UNAVAILABLE', 'yes']);
});

/** Answers with one page after the other and records the requests. */
function book(...pages: unknown[]) {
  const asked: ExchangeRequest[] = [];
  const ask = async (request: ExchangeRequest) => {
    asked.push(request);
    return { result: JsonText.ofValue(pages[asked.length - 1]) };
  };
  return { asked, ask };
}

const tool = (name: string) => ({ name });

/** Items and cut of a list of tools. */
async function gathered(ask: Parameters<typeof gatherPages>[1]) {
  const { items, cut } = await gatherPages('tools', ask);
  return cut === undefined ? { items } : { items, cut };
}

test('lists: follow an empty cursor like any other', async () => {
  const { ask, asked } = book({ tools: [tool('a')], nextCursor: '' }, { tools: [tool('b')] });
  assert.equal(await gathered(ask), { items: [tool('a'), tool('b')] });
  assert.equal(asked[1]?.params, { cursor: '' });
});

test('lists: drop items that are not objects, and a field that is not an array', async () => {
  const { ask } = book({ tools: [tool('a'), null, 'b', 3, [tool('c')]], nextCursor: '2' }, { tools: 'none' });
  assert.equal(await gathered(ask), { items: [tool('a')] });
});

test('lists: end with what was gathered when a cursor repeats, even one from an earlier page', async () => {
  const { ask, asked } = book(
    { tools: [tool('a')], nextCursor: 'x' },
    { tools: [tool('b')], nextCursor: 'y' },
    { tools: [tool('c')], nextCursor: 'x' },
  );
  const items = ['a', 'b', 'c'].map(tool);
  assert.equal(await gathered(ask), { items, cut: 'its cursor repeats' });
  assert.is(asked.length, 3);
});

test('lists: end where the transport has found that a cursor leads nowhere', async () => {
  const ask = async () => ({ result: JsonText.ofValue({ tools: [tool('a')] }), cut: 'its cursor repeats' });
  assert.equal(await gathered(ask), { items: [tool('a')], cut: 'its cursor repeats' });
});

test('lists: end with what was gathered when the same page comes under ever new cursors', async () => {
  const page = (nextCursor: string, ...names: string[]) => ({ tools: names.map(tool), nextCursor });
  const pages = [page('1', 'a', 'b'), page('2'), page('3', 'b'), page('4', 'c'), page('5', 'a')];
  const { ask, asked } = book(...pages, page('6'), page('7', 'b', 'a'), page('8', 'c'), page('9', 'never'));
  const items = ['a', 'b', 'c'].map(tool);
  assert.equal(await gathered(ask), { items, cut: 'its pages repeat' });
  assert.is(asked.length, 8);
});

test('lists: end after the maximum number of pages', async () => {
  let pages = 0;
  const ask = async () => {
    pages += 1;
    return { result: JsonText.ofValue({ tools: [tool(`t${pages}`)], nextCursor: String(pages) }) };
  };
  const { items, cut } = await gatherPages('tools', ask);
  assert.equal([items.length, cut], [LIMITS.listPages, `it has more than ${LIMITS.listPages} pages`]);
  assert.is(pages, LIMITS.listPages);
});

test('lists: request no further page when there are too many items', async () => {
  const { ask, asked } = book({
    tools: Array.from({ length: MAX_LIST_ITEMS + 1 }, () => ({})),
    nextCursor: '2',
  });
  const { items, cut } = await gatherPages('tools', ask);
  assert.equal([items.length, cut], [MAX_LIST_ITEMS + 1, `it has more than ${MAX_LIST_ITEMS} items`]);
  assert.is(asked.length, 1);
});

test('lists: end before a page with which they have more than 1,000,000 values or too many bytes', async () => {
  const filled = (objects: number) => ({
    tools: Array.from({ length: 20 }, (_, index) => ({
      name: `a${index}`,
      more: Array(objects / 20).fill({}),
    })),
  });
  const page = (objects: number, nextCursor?: string) => ({ ...filled(objects), nextCursor });
  const fits = MAX_LIST_VALUES - 200;
  assert.is((await gatherPages('tools', book(filled(fits)).ask)).items.length, 20);
  const error = await errorOf(gatherPages('tools', book(page(MAX_LIST_VALUES)).ask));
  assert.is(error.code, 'BACKEND_UNAVAILABLE');
  const { items, cut } = await gatherPages('tools', book(page(fits / 2, '2'), page(fits / 2 + 200)).ask);
  assert.equal([items.length, cut], [20, 'it is too large']);
  const long = { tools: [{ name: 'x'.repeat(LIMITS.parsedMessageBytes) }] };
  assert.match((await errorOf(gatherPages('tools', book(long).ask))).message, '8388608 bytes');
});

test('lists: a large page is parsed in several turns, and has no item that is too large for one', async () => {
  const more = Array(LIMITS.parsedAtOnce / 2).fill({});
  const pageOf = (count: number, item: object) => ({
    tools: Array(count).fill(item),
    ttlMs: 5,
    nextCursor: '',
  });
  const tools = [...Array(8).keys()].map((index) => ({ name: `t${index}`, more }));
  const pages = { ...pageOf(0, {}), tools: [...tools, null], nextCursor: 7 };
  let items: readonly object[] = [];
  const turns = await turnsOf(async () => {
    ({ items } = await gatherPages('tools', book(pages).ask, { scheduler: untimedScheduler(1) }));
  });
  assert.equal(items, tools);
  assert.ok(turns >= 7, `${turns} turns`);
  const wide = pageOf(1, { name: 'a', more: [...more, ...more] });
  const error = await errorOf(gatherPages('tools', book(wide).ask));
  assert.match(error.message, `${LIMITS.parsedAtOnce} values`);
});

test('lists: read 10,000 tools on one page', async () => {
  const property = { type: 'string', description: 'one of many' };
  const inputSchema = {
    type: 'object',
    properties: { a: property, b: property, c: property },
    required: ['a'],
  };
  const tools = Array.from({ length: 10_000 }, (_, index) => {
    return { name: `tool-${index}`, description: 'does many things '.repeat(10), inputSchema };
  });
  assert.is((await gatherPages('tools', book({ tools }).ask)).items.length, 10_000);
});

test.run();
