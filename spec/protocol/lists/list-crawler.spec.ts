// One list of one template: which pages are asked for, and which of the items are taken.

import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import type { Answer } from '../../../src/domain/exchange.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { ListCrawler } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import { suite } from '../../helpers/suite.ts';
import { answered, CLIENT, ListingBackends } from '../listing-backends.ts';

const test = suite('list crawler');

/** What is taken of these pages, and how many of them were asked for. */
async function crawled(...pages: readonly Answer[]) {
  const backends = new ListingBackends({});
  let asked = 0;
  backends.exchange = () => {
    const page = pages[asked];
    asked += 1;
    assert.ok(page);
    return of(page);
  };
  const crawler = new ListCrawler(() => backends);
  const { items, bytes } = await crawler.crawl('tools', 't', CLIENT);
  return { names: items.map(({ name }) => name), bytes, asked };
}

const nested = (levels: number): JsonValue => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const page = (...tools: JsonObject[]) => answered({ tools, nextCursor: 'more' });
const last = (...tools: JsonObject[]) => answered({ tools });

test('reads page after page', async () => {
  const { names, asked, bytes } = await crawled(page({ name: '1' }), last({ name: '2' }));
  assert.equal([names, asked], [['1', '2'], 2]);
  const texts = [{ tools: [{ name: '1' }], nextCursor: 'more' }, { tools: [{ name: '2' }] }];
  assert.is(
    bytes,
    texts.reduce((sum, text) => sum + JSON.stringify(text).length, 0),
  );
});

test('leaves out what is nested deeper than 128 levels, and what is no object', async () => {
  const tools = [{ name: 'flat' }, { name: 'deep', x: nested(127) }, { name: 'too deep', x: nested(128) }];
  assert.equal((await crawled(last(...tools))).names, ['flat', 'deep']);
  assert.equal((await crawled(answered({ tools: [1, null, [], { name: 'x' }] }))).names, ['x']);
  assert.equal((await crawled(answered({ tools: 'none' }))).names, []);
});

test('what cannot be written spoils its own template only', async () => {
  await crawled(last({ name: 'x', deep: nested(100_000) })).then(
    () => assert.unreachable(),
    (error: unknown) => assert.instance(error, RangeError),
  );
});

test('takes 4 MiB of one list: the page that exceeds it ends it', async () => {
  const large = (name: string) => ({ name, text: 'x'.repeat(2 ** 21 - 1_000) });
  const pages = [page(large('1')), page(large('2')), page(large('3')), last({ name: '4' })];
  assert.equal(await crawled(...pages).then(({ names, asked }) => [names, asked]), [['1', '2'], 3]);
  assert.equal((await crawled(last({ name: 'x', text: 'x'.repeat(2 ** 22) }))).names, []);
});

test('takes a page of more items than a call has arguments', async () => {
  const tools = Array.from({ length: 200_000 }, () => ({ name: 'x' }));
  assert.is((await crawled(answered({ tools }))).names.length, 200_000);
});

test('takes an error answer for a list that is not offered', async () => {
  const error: Answer = {
    ...answered({}),
    event: { kind: 'error', error: { code: -32601, message: 'no' } },
  };
  assert.equal(await crawled(error), { names: [], bytes: 0, asked: 1 });
});

test.run();
