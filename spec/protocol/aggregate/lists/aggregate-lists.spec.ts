// Lists of all templates: slow templates delay no caller, failed templates keep their last list, and everything is bounded.

import { mock } from 'node:test';
import { of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { SourcedEvent } from '../../../../src/domain/calls/exchange.ts';
import { noHealthyInstance } from '../../../../src/domain/errors/backend-errors.ts';
import { type JsonObject, JsonText, type JsonValue } from '../../../../src/domain/json/json.ts';
import type { Client, Owner } from '../../../../src/domain/mcp/client.ts';
import type { ListChange, ListField } from '../../../../src/domain/mcp/mcp.ts';
import { suite } from '../../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../../helpers/time/simulated-time.ts';
import { TurnCounter, turnsOf, untimedScheduler } from '../../../helpers/time/turns.ts';
import { aggregateLists, answered, CLIENT, ListingBackends } from '../../listing-backends.ts';

const test = suite('aggregate lists');

simulateTime(test);

function setUp() {
  const all = {
    fast: new ListingBackends({ tools: [{ name: 'f' }] }),
    slow: new ListingBackends({ tools: [{ name: 's' }] }),
  };
  const changes$ = new Subject<ListChange>();
  const backendsOf = (template: string) => (template === 'fast' ? all.fast : all.slow);
  const recovered$ = new Subject<string>();
  const lists = aggregateLists({
    ...{ backendsOf, listChanges$: changes$, recovered$, scheduler: untimedScheduler() },
    hasInstances: (template) => template !== 'fast',
  });
  const late: ListChange[] = [];
  lists.late$.subscribe((change) => late.push(change));
  const gather = () => lists.gather('tools', ['fast', 'slow'], CLIENT);
  return { ...all, late, gather, lists, changes$, recovered$ };
}

const names = (gathered: Awaited<ReturnType<ReturnType<typeof setUp>['gather']>>) =>
  gathered.map(({ template, items, missing, staleMs }) => {
    const state = missing ?? (staleMs === undefined ? '' : ` (${staleMs} ms old)`);
    return `${template}: ${items.map(({ name }) => name).join()}${state}`;
  });
const LATE = 'slow: It has not answered yet.';

test('a list of 5,000 tools is checked in many turns, and names what is withheld by its place', async () => {
  const tools: JsonObject[] = Array.from({ length: 5_000 }, (_, n) => ({ name: `tool-${n}` }));
  tools[4_321] = { title: 'it has no name' };
  const backends = new ListingBackends({ tools });
  const withheld: string[] = [];
  const lists = aggregateLists({
    ...{ backendsOf: () => backends, listChanges$: new Subject(), scheduler: untimedScheduler() },
    onListed: (_list, _template, items) => withheld.push(...items.map(({ name }) => name)),
  });
  let found: readonly JsonObject[] | undefined;
  const turns = await turnsOf(async () => {
    found = (await lists.gather('tools', ['t'], CLIENT))[0]?.items;
  });
  assert.ok(turns >= 9, `${turns} turns`);
  assert.equal([found?.length, found?.at(-1)?.name, withheld], [4_999, 'tool-4999', ['tools[4321]']]);
});

test('the lists of 400 templates are asked for over several turns', async () => {
  const backends = new ListingBackends({ tools: [{ name: 'x' }] });
  const asked = new TurnCounter();
  const exchange = backends.exchange.bind(backends);
  backends.exchange = (...of) => {
    asked.note();
    return exchange(...of);
  };
  const lists = aggregateLists({
    ...{ backendsOf: () => backends, listChanges$: new Subject(), scheduler: untimedScheduler(1) },
  });
  const templates = Array.from({ length: 400 }, (_, at) => `t${at}`);
  const gathered = await lists.gather('tools', templates, CLIENT);
  assert.equal(
    gathered.map(({ template }) => template),
    templates,
  );
  assert.is(asked.all, 400);
  assert.ok(asked.fullest <= 20, `${asked.fullest} in one turn`);
});

test('a list that did not change is the same, whatever its pages and its caller are', async () => {
  const pages = new Map<unknown, JsonObject>([
    [undefined, { tools: [{ name: 'a' }], nextCursor: '2' }],
    ['2', { tools: [{ name: 'b' }], nextCursor: '3' }],
    ['3', { tools: [{ name: 'c' }] }],
  ]);
  const paged = new ListingBackends({});
  paged.exchange = ({ params }) => of(answered(pages.get(params?.cursor) ?? {}));
  const lists = aggregateLists({ backendsOf: () => paged, listChanges$: new Subject() });
  const itemsFor = async (client: Client) => (await lists.gather('tools', ['t'], client))[0]?.items;
  const first = await itemsFor(CLIENT);
  assert.equal(
    first?.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.is(await itemsFor(CLIENT), first);
  const capabilities = { experimental: { other: {} } };
  assert.is(await itemsFor({ owner: { id: 'other' }, profile: { ...CLIENT.profile, capabilities } }), first);
  pages.set('2', { tools: [{ name: 'changed' }], nextCursor: '3' });
  assert.equal(
    (await itemsFor(CLIENT))?.map(({ name }) => name),
    ['a', 'changed', 'c'],
  );
  pages.set('2', { tools: [{ name: 'last' }] });
  assert.equal(
    (await itemsFor(CLIENT))?.map(({ name }) => name),
    ['a', 'last'],
  );
});

test('answers that arrive together are read one by one, and equal ones once', async () => {
  const due: (() => void)[] = [];
  const scheduler = untimedScheduler();
  scheduler.turn = () => new Promise((resolve) => due.push(resolve));
  const large = new ListingBackends({ tools: [{ name: 'a' }] });
  let read = 0;
  const lists = aggregateLists({
    ...{ backendsOf: () => large, listChanges$: new Subject(), scheduler },
    onListed: () => (read += 1),
  });
  const gathered = Array.from({ length: 5 }, (_, index) => {
    const profile = { ...CLIENT.profile, capabilities: { experimental: { [`c${index}`]: {} } } };
    return lists.gather('tools', ['t'], { ...CLIENT, profile });
  });
  await settled();
  assert.is(due.length, 5);
  for (const [index, next] of due.entries()) {
    assert.is(read, index);
    next();
    await settled();
  }
  const [first, ...others] = await Promise.all(gathered);
  for (const other of others) assert.is(other[0]?.items, first?.[0]?.items);
});

test('a page that is refused ends a list, also one that was complete before', async () => {
  const paged = new ListingBackends({});
  let isRefused = false;
  paged.exchange = ({ params }) => {
    if (params?.cursor === undefined) return of(answered({ tools: [{ name: 'a' }], nextCursor: '2' }));
    const error = { code: -32603, message: 'no' };
    return of(
      isRefused ? { ...answered({}), event: { kind: 'error', error } } : answered({ tools: [{ name: 'b' }] }),
    );
  };
  const lists = aggregateLists({ backendsOf: () => paged, listChanges$: new Subject() });
  const read = async () => {
    const [listed] = await lists.gather('tools', ['t'], CLIENT);
    return [listed?.items.map(({ name }) => name).join(), listed?.cut, listed?.staleMs];
  };
  assert.equal(await read(), ['a,b', undefined, undefined]);
  isRefused = true;
  assert.equal(await read(), ['a', 'a page was refused', undefined]);
});

test('waits ten seconds for the first list of a slow template, and reports its late answer', async () => {
  const { slow, late, gather } = setUp();
  const answer = new Subject<SourcedEvent>();
  slow.instead = answer;
  let found: readonly string[] | undefined;
  void gather().then((lists) => (found = names(lists)));
  await settled();
  mock.timers.tick(9_999);
  await settled();
  assert.is(found, undefined);
  mock.timers.tick(1);
  await settled();
  assert.equal(found, ['fast: f', LATE]);
  assert.equal(late, []);
  answer.next(answered({ tools: [{ name: 's' }] }));
  await settled();
  assert.equal(late, [{ template: 'slow', list: 'tools' }]);
});

test('shares the reading of a slow template, for which later requests do not wait as long again', async () => {
  const { slow, gather } = setUp();
  slow.instead = new Subject<SourcedEvent>();
  const gathered = gather();
  await settled();
  mock.timers.tick(10_000);
  await gathered;
  let later: readonly string[] | undefined;
  void gather().then((lists) => (later = names(lists)));
  await settled();
  assert.equal([later, slow.asked.length], [['fast: f', LATE], 1]);
});

test('waits as long for the first list of a client with other capabilities, whose process starts', async () => {
  const { slow, lists, gather } = setUp();
  await gather();
  mock.timers.tick(60_000);
  const answer = new Subject<SourcedEvent>();
  slow.instead = answer;
  const profile = { ...CLIENT.profile, capabilities: { elicitation: {} } };
  const gathered = lists.gather('tools', ['slow'], { ...CLIENT, profile });
  await settled();
  mock.timers.tick(9_999);
  await settled();
  answer.next(answered({ tools: [{ name: 's' }] }));
  answer.complete();
  assert.equal(names(await gathered), ['slow: s']);
});

test('shows the last list with its age while the same server is silent, and not that of another server', async () => {
  const { slow, gather } = setUp();
  await gather();
  slow.instead = new Subject<SourcedEvent>();
  const late = async (name: string, ms: number) => {
    slow.handshake = { ...slow.handshake, serverInfo: { name, version: '2' } };
    const gathered = gather();
    await settled();
    mock.timers.tick(ms);
    return names(await gathered).at(-1);
  };
  assert.is(await late(slow.handshake.serverInfo.name, 1_000), 'slow: s (1000 ms old)');
  assert.is(await late('another', 10_000), LATE);
});

test('a template that is down is stale or missing, and announced once it recovers', async () => {
  const { slow, fast, gather, late, recovered$ } = setUp();
  await gather();
  for (const backends of [slow, fast])
    backends.instead = throwError(() => noHealthyInstance('it', 'exited with code 1'));
  mock.timers.tick(5_000);
  assert.equal(names(await gather()), ['fast: f (5000 ms old)', 'slow: s (5000 ms old)']);
  slow.handshake = { ...slow.handshake, serverInfo: { name: 'new', version: '1' } };
  const noDetails = 'slow: No instance of "it" is healthy right now.';
  assert.is(names(await gather()).at(-1), noDetails);
  for (const template of ['other', 'slow', 'slow']) recovered$.next(template);
  assert.equal(late, [{ template: 'slow', list: 'tools' }]);
});

test('a list that an earlier answer stands in for is stale', async () => {
  const { slow, gather } = setUp();
  slow.instead = of({ ...answered({ tools: [{ name: 's' }] }), staleMs: 7_000 });
  assert.is(names(await gather()).at(-1), 'slow: s (7000 ms old)');
});

test('waits for a template that is starting, and counts it as missing after that', async () => {
  const { slow, gather, recovered$, late } = setUp();
  const { promise, resolve } = Promise.withResolvers<void>();
  const [handshake] = slow.handshakes();
  slow.handshakes = () => [];
  Object.assign(slow, { untilStarted: () => promise });
  const first = gather();
  await settled();
  mock.timers.tick(10_000);
  assert.is(names(await first).at(-1), 'slow: No instance of "slow" is healthy right now.');
  const second = gather();
  await settled();
  slow.handshakes = () => (handshake === undefined ? [] : [handshake]);
  resolve();
  assert.is(names(await second).at(-1), 'slow: s');
  recovered$.next('slow');
  assert.equal(late, [{ template: 'slow', list: 'tools' }]);
});

test('waits for the start of a template that was registered again as long as for the first one', async () => {
  const { slow, gather } = setUp();
  const [handshake] = slow.handshakes();
  for (const _ of ['first', 'again']) {
    const { promise, resolve } = Promise.withResolvers<void>();
    slow.handshakes = () => [];
    Object.assign(slow, { untilStarted: () => promise });
    const listed = gather();
    await pass(6_000);
    slow.handshakes = () => (handshake === undefined ? [] : [handshake]);
    resolve();
    assert.is(names(await listed).at(-1), 'slow: s');
  }
});

test('all requests of one owner take one place among those that wait for a start', async () => {
  const { slow, lists } = setUp();
  const waiting: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  slow.handshakes = () => [];
  Object.assign(slow, { untilStarted: ({ id }: Owner) => promise.then(() => void waiting.push(id)) });
  const asked = ['ann', 'ann', 'bob'].flatMap((id) => [
    lists.gather('tools', ['slow'], { ...CLIENT, owner: { id } }),
    lists.gather('prompts', ['slow'], { ...CLIENT, owner: { id } }),
    lists.untilStarted(['slow'], { id }),
  ]);
  await settled();
  resolve();
  await Promise.all(asked);
  assert.equal(waiting, ['ann', 'bob']);
});

test('a template without instances is not missing, and a server that refuses its list is', async () => {
  const { fast, slow, gather } = setUp();
  slow.instead = of({ ...answered({}), event: { kind: 'error', error: { code: -32603, message: 'no' } } });
  assert.match(names(await gather()).at(-1) ?? '', 'It answered the request for its list with an error.');
  slow.instead = of({ ...answered({}), event: { kind: 'error', error: { code: -32601, message: 'no' } } });
  fast.handshakes = () => [];
  assert.equal(names(await gather()), ['slow: ']);
});

test('does not ask for a list that is not announced, nor without an instance', async () => {
  const { fast, slow, lists } = setUp();
  fast.handshake = { ...fast.handshake, capabilities: { resources: {} } };
  slow.handshake = { ...slow.handshake, era: 'bare', capabilities: {} };
  const gather = (list: ListField) => lists.gather(list, ['fast', 'slow'], CLIENT);
  await gather('tools');
  await gather('resourceTemplates');
  const found = [fast.asked, slow.asked].map((asked) => asked.map(({ method }) => method));
  assert.equal(found, [['resources/templates/list'], ['tools/list', 'resources/templates/list']]);
  fast.handshakes = () => [];
  assert.is(lists.offers('resources', 'fast', CLIENT.owner), false);
});

test('asks again when the list changed meanwhile, and drops the old answer', async () => {
  const { slow, gather, changes$ } = setUp();
  const [before, after] = [new Subject<SourcedEvent>(), new Subject<SourcedEvent>()];
  slow.instead = before;
  const early = gather();
  await settled();
  changes$.next({ template: 'slow', list: 'prompts' });
  changes$.next({ template: 'slow', list: 'tools' });
  slow.instead = after;
  const late = gather();
  await settled();
  after.next(answered({ tools: [{ name: 'new' }] }));
  before.next(answered({ tools: [{ name: 'old' }] }));
  assert.equal(names(await early), ['fast: f', 'slow: old']);
  assert.equal(names(await late), ['fast: f', 'slow: new']);
  slow.instead = throwError(() => new Error('dead'));
  assert.equal(names(await gather()), ['fast: f', 'slow: new (0 ms old)']);
});

test('all lists together are limited to 128 MiB of memory: later templates are left out', async () => {
  const { fast, slow, lists } = setUp();
  fast.lists = { prompts: [{ name: 'f', text: 'x'.repeat(4_000_000) }] };
  slow.lists = { prompts: [{ name: 's' }] };
  const templates = [...Array.from({ length: 16 }, () => 'fast'), 'slow', 'fast'];
  const gathered = await lists.gather('prompts', templates, CLIENT);
  const found = gathered.map(({ template, items }) => `${template} ${items.length}`);
  assert.equal(found, [...Array.from({ length: 16 }, () => 'fast 1'), 'slow 1', 'fast 0']);
  assert.is(slow.asked.length, 1);
});

test('values count in that limit, not only the bytes of their JSON', async () => {
  const { fast, slow, lists } = setUp();
  const values = Array(90_000).fill({});
  fast.lists = { prompts: Array.from({ length: 10 }, (_, index) => ({ name: `f${index}`, values })) };
  slow.lists = { prompts: [{ name: 's' }] };
  const gathered = await lists.gather('prompts', ['fast', 'fast', 'slow'], CLIENT);
  assert.equal(
    gathered.map(({ missing }) => missing),
    [undefined, ...Array(2).fill('All lists together are too large.')],
  );
});

/** The items that are accepted of these pages, and the requests for them. */
async function crawled(...pages: SourcedEvent[]) {
  return crawledFor(CLIENT, ...pages);
}

async function crawledFor(client: Client, ...pages: SourcedEvent[]) {
  const { fast, lists } = setUp();
  const { exchange } = fast;
  fast.exchange = (request, options) => {
    void exchange.call(fast, request, options);
    const page = pages.shift();
    assert.ok(page);
    return of(page);
  };
  const [gathered] = await lists.gather('tools', ['fast'], client);
  const { items } = gathered ?? {};
  return { items, names: items?.map(({ name }) => name), asked: fast.asked };
}

const nested = (levels: number): JsonValue => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const page = (...tools: JsonObject[]) => answered({ tools, nextCursor: `after ${tools[0]?.name}` });
const last = (...tools: JsonObject[]) => answered({ tools });

test('follows the pages of one instance', async () => {
  const first = answered({ tools: [{ name: '1' }], nextCursor: '' }, 'b');
  const { names, asked } = await crawled(first, last({ name: '2' }));
  assert.equal(names, ['1', '2']);
  assert.equal(asked, [
    { method: 'tools/list', instanceId: undefined },
    { method: 'tools/list', params: { cursor: '' }, instanceId: 'b' },
  ]);
});

test('keeps numbers that JavaScript would change', async () => {
  const schema = '{"type":"object","properties":{"n":{"maximum":18446744073709551615}}}';
  const text = `{"tools":[{"name":"u64","inputSchema":${schema}}]}`;
  const { items } = await crawled({
    ...last(),
    event: { kind: 'result', result: JsonText.ofText(text) },
  });
  assert.is(JSON.stringify(items?.[0]?.inputSchema), schema);
});

test('declares the capabilities of the client, on which the list of a modern server may depend', async () => {
  const capabilities = { extensions: { 'io.modelcontextprotocol/ui': {} } };
  const client = { ...CLIENT, profile: { ...CLIENT.profile, capabilities } };
  const { asked } = await crawledFor(client, page({ name: '1' }), last({ name: '2' }));
  const _meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
  assert.equal(
    asked.map(({ params }) => params),
    [{ _meta }, { _meta, cursor: 'after 1' }],
  );
});

test('omits items that are nested deeper than 128 levels, and items that are not objects', async () => {
  const tools = [{ name: 'flat' }, { name: 'deep', x: nested(127) }, { name: 'too deep', x: nested(128) }];
  assert.equal((await crawled(last(...tools))).names, ['flat', 'deep']);
  assert.equal((await crawled(answered({ tools: [1, null, [], { name: 'x' }] }))).names, ['x']);
  assert.equal((await crawled(answered({ tools: 'none' }))).names, []);
});

test('accepts 4 MiB of one list: the page that exceeds them ends it', async () => {
  // Of nearly 2 MiB.
  const large = (page: number) =>
    Array.from({ length: 20 }, (_, index) => ({ name: `${page} ${index}`, text: 'x'.repeat(104_000) }));
  const pages = [page(...large(1)), page(...large(2)), page(...large(3)), last({ name: '4' })];
  const { names = [], asked } = await crawled(...pages);
  assert.equal([names.at(0), names.at(-1), names.length, asked.length], ['1 0', '2 19', 40, 3]);
  assert.equal((await crawled(last(...large(1), ...large(2), ...large(3)))).names, []);
});

test('accepts a page of 200,000 items', async () => {
  const tools = Array.from({ length: 200_000 }, (_, index) => ({ name: `x${index}` }));
  assert.is((await crawled(answered({ tools }))).names?.length, 200_000);
});

test.run();
