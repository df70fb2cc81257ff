// Lists of all templates: slow templates delay no caller, failed templates keep their last list, and everything is bounded.

import { mock } from 'node:test';
import { NEVER, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { Answer } from '../../../src/domain/exchange.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import type { ListChange, ListField } from '../../../src/domain/mcp.ts';
import { AggregateLists } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import { settled } from '../../actors/instances/instance-harness.ts';
import { suite } from '../../helpers/suite.ts';
import { answered, CLIENT, ListingBackends } from '../listing-backends.ts';

const test = suite('aggregate lists');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

function setUp() {
  const all = {
    fast: new ListingBackends({ tools: [{ name: 'f' }] }),
    slow: new ListingBackends({ tools: [{ name: 's' }] }),
  };
  const lists = new AggregateLists((template) => (template === 'fast' ? all.fast : all.slow));
  const late: ListChange[] = [];
  lists.late$.subscribe((change) => late.push(change));
  const gather = () => lists.gather('tools', ['fast', 'slow'], CLIENT);
  return { ...all, late, gather, lists };
}

const names = (gathered: Awaited<ReturnType<ReturnType<typeof setUp>['gather']>>) =>
  gathered.map(({ template, items }) => `${template}: ${items.map(({ name }) => name).join()}`);

test('waits a second for a slow template, and reports its late answer', async () => {
  const { slow, late, gather } = setUp();
  const answer = new Subject<Answer>();
  slow.instead = answer;
  const gathered = gather();
  await settled();
  mock.timers.tick(1_000);
  assert.equal(names(await gathered), ['fast: f', 'slow: ']);
  assert.equal(late, []);
  answer.next(answered({ tools: [{ name: 's' }] }));
  await settled();
  assert.equal(late, [{ template: 'slow', list: 'tools' }]);
});

test('all callers wait once for a template that hangs, and again for its next answer', async () => {
  const { slow, gather } = setUp();
  const answer = new Subject<Answer>();
  slow.instead = answer;
  const first = gather();
  await settled();
  mock.timers.tick(1_000);
  await first;
  assert.equal(names(await gather()), ['fast: f', 'slow: '], 'without any wait');
  answer.next(answered({ tools: [{ name: 's' }] }));
  await settled();
  slow.instead = new Subject<Answer>();
  let isThere = false;
  const second = gather().then((gathered) => {
    isThere = true;
    return gathered;
  });
  mock.timers.tick(999);
  await settled();
  assert.is(isThere, false);
  mock.timers.tick(1);
  assert.equal(names(await second), ['fast: f', 'slow: s']);
});

test('does not ask for a list that is not announced, nor without an instance', async () => {
  const { fast, slow, lists } = setUp();
  fast.peer = { ...fast.peer, capabilities: { resources: {} } };
  slow.peer = { ...slow.peer, era: 'bare', capabilities: {} };
  const gather = (list: ListField) => lists.gather(list, ['fast', 'slow'], CLIENT);
  await gather('tools');
  await gather('resourceTemplates');
  const found = [fast.asked, slow.asked].map((asked) => asked.map(({ method }) => method));
  assert.equal(found, [['resources/templates/list'], ['tools/list', 'resources/templates/list']]);
  fast.peers = () => [];
  assert.is(lists.offers('resources', 'fast', CLIENT.owner), false);
});

test('leaves no timer behind', async () => {
  const { gather } = setUp();
  const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  mock.timers.reset();
  for (let turn = 0; turn < 10; turn += 1) await gather();
  const after = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  assert.is(after, before);
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
});

test('reports no change when the late answer equals the known list', async () => {
  const { slow, late, gather } = setUp();
  await gather();
  const answer = new Subject<Answer>();
  slow.instead = answer;
  const gathered = gather();
  await settled();
  mock.timers.tick(1_000);
  assert.equal(names(await gathered), ['fast: f', 'slow: s']);
  answer.next(answered({ tools: [{ name: 's' }] }));
  await settled();
  assert.equal(late, []);
});

test('uses the last list of a template that fails, and an empty one if there is none', async () => {
  const { fast, slow, gather } = setUp();
  slow.instead = throwError(() => new Error('dead'));
  assert.equal(names(await gather()), ['fast: f', 'slow: ']);
  slow.instead = undefined;
  await gather();
  slow.instead = throwError(() => new Error('dead'));
  fast.instead = NEVER;
  const gathered = gather();
  await settled();
  mock.timers.tick(1_000);
  assert.equal(names(await gathered), ['fast: f', 'slow: s']);
});

test('asks a template once for all callers at the same time', async () => {
  const { slow, gather } = setUp();
  const answer = new Subject<Answer>();
  slow.instead = answer;
  const both = [gather(), gather()];
  await settled();
  assert.is(slow.asked.length, 1);
  answer.next(answered({ tools: [{ name: 's' }] }));
  for (const gathered of await Promise.all(both)) assert.equal(names(gathered), ['fast: f', 'slow: s']);
  slow.instead = undefined;
  await gather();
  assert.is(slow.asked.length, 2);
  assert.is(slow.listChanged$.observed, false);
});

test('asks again when the list changed meanwhile, and drops the old answer', async () => {
  const { slow, gather } = setUp();
  const [before, after] = [new Subject<Answer>(), new Subject<Answer>()];
  slow.instead = before;
  const early = gather();
  await settled();
  slow.listChanged$.next('prompts');
  slow.listChanged$.next('tools');
  slow.instead = after;
  const late = gather();
  await settled();
  after.next(answered({ tools: [{ name: 'new' }] }));
  before.next(answered({ tools: [{ name: 'old' }] }));
  assert.equal(
    [names(await early), names(await late)],
    [
      ['fast: f', 'slow: old'],
      ['fast: f', 'slow: new'],
    ],
  );
  slow.instead = throwError(() => new Error('dead'));
  assert.equal(names(await gather()), ['fast: f', 'slow: new']);
});

test('all lists together have 64 MiB: later templates list nothing', async () => {
  const { fast, slow, lists } = setUp();
  fast.lists = { tools: [{ name: 'f', text: 'x'.repeat(4_000_000) }] };
  const templates = [...Array.from({ length: 16 }, () => 'fast'), 'slow', 'fast'];
  const gathered = await lists.gather('tools', templates, CLIENT);
  const found = gathered.map(({ items }) => items.length);
  assert.equal(found, [...Array.from({ length: 17 }, () => 1), 0]);
  assert.is(slow.asked.length, 1);
});

test('takes an error answer for a list that is not offered', async () => {
  const { slow, gather } = setUp();
  slow.instead = of({ ...answered({}), event: { kind: 'error', error: { code: -32601, message: 'no' } } });
  assert.equal(names(await gather()), ['fast: f', 'slow: ']);
});

/** The items that are accepted of these pages, and the requests for them. */
async function crawled(...pages: Answer[]) {
  const { fast, lists } = setUp();
  const { exchange } = fast;
  fast.exchange = (request, options) => {
    void exchange.call(fast, request, options);
    const page = pages.shift();
    assert.ok(page);
    return of(page);
  };
  const [gathered] = await lists.gather('tools', ['fast'], CLIENT);
  return { names: gathered?.items.map(({ name }) => name), asked: fast.asked };
}

const nested = (levels: number): JsonValue => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const page = (...tools: JsonObject[]) => answered({ tools, nextCursor: 'more' });
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

test('leaves out items that are nested deeper than 128 levels, and those that are no objects', async () => {
  const tools = [{ name: 'flat' }, { name: 'deep', x: nested(127) }, { name: 'too deep', x: nested(128) }];
  assert.equal((await crawled(last(...tools))).names, ['flat', 'deep']);
  assert.equal((await crawled(answered({ tools: [1, null, [], { name: 'x' }] }))).names, ['x']);
  assert.equal((await crawled(answered({ tools: 'none' }))).names, []);
});

test('takes 4 MiB of one list: the page that exceeds it ends it', async () => {
  const large = (name: string) => ({ name, text: 'x'.repeat(2 ** 21 - 1_000) });
  const pages = [page(large('1')), page(large('2')), page(large('3')), last({ name: '4' })];
  assert.equal(await crawled(...pages).then(({ names, asked }) => [names, asked.length]), [['1', '2'], 3]);
  assert.equal((await crawled(last({ name: 'x', text: 'x'.repeat(2 ** 22) }))).names, []);
});

test('takes a page of more items than a call has arguments', async () => {
  const tools = Array.from({ length: 200_000 }, () => ({ name: 'x' }));
  assert.is((await crawled(answered({ tools }))).names?.length, 200_000);
});

test.run();
