// Reading lists: which one is refused for its values, which page is cut while it waits to be parsed, and what equal lists share.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { SourcedAnswer } from '../../../src/domain/calls/exchange.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { ListReader, type ReadList } from '../../../src/domain/lists/list-reader.ts';
import { HeldBytes, jsonMemory, memoryBounds } from '../../../src/domain/memory/held-bytes.ts';
import { codeOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { schedulerWith } from '../../helpers/time/turns.ts';

const test = suite('list reader');

let made = 100_000;
/** The text of a page with this many items, with names that no other page has. */
function pageOf(items: number, isLast = true): string {
  made += items;
  const tools = Array.from({ length: items }, (_, index) => ({ name: `${made - index}` }));
  return JSON.stringify({ tools, ...(isLast ? {} : { nextCursor: String(made) }) });
}

/** Memory of a page with this many items. */
function bytesOf(items: number): number {
  return jsonMemory(JSON.parse(pageOf(items)));
}

function answerOf(text: string): SourcedAnswer {
  return { event: { kind: 'result', result: JsonText.ofText(text) }, instanceId: 'i', serverId: 's' };
}

function reading(ownerId: string, texts: readonly string[]) {
  const left = [...texts];
  return { ownerId, ask: async () => answerOf(left.shift() ?? '{}'), refused: () => undefined };
}

function setUp() {
  const reader = new ListReader({ bounds: { totalBytes: bytesOf(100), ownerBytes: bytesOf(25) } });
  const list = (ownerId: string, pages: readonly number[]) =>
    reading(
      ownerId,
      pages.map((items, index) => pageOf(items, index === pages.length - 1)),
    );
  const isRefused = async (ownerId: string, ...pages: number[]) =>
    (await codeOf(() => reader.read('tools', list(ownerId, pages), () => undefined))) === 'QUEUE_FULL';
  /** Resolves when the list is in use, with what ends that. */
  const use = async (ownerId: string, ...pages: number[]) => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const ended = reader.read('tools', list(ownerId, pages), () => {
      begun.resolve();
      return end.promise;
    });
    await Promise.race([begun.promise, ended]);
    return () => {
      end.resolve();
      return ended;
    };
  };
  return { isRefused, use };
}

test('lets a caller have one list of any size, or several within its share, and no more than all may have', async () => {
  const { isRefused, use } = setUp();
  assert.ok(await isRefused('a', 60, 10, 31));
  const release = await use('a', 60, 10);
  assert.ok(await isRefused('a', 1));
  assert.ok(await isRefused('b', 31));
  await use('b', 10);
  await use('b', 10);
  assert.ok(await isRefused('b', 10));
  await release();
  assert.not(await isRefused('a', 60));
  await use('a', 60);
  assert.ok(await isRefused('a', 1));
});

test('knows no shares without authentication, when all callers are one', async () => {
  const { isRefused, use } = setUp();
  for (let index = 0; index < 3; index += 1) await use(ANONYMOUS.id, 30);
  assert.ok(await isRefused(ANONYMOUS.id, 30));
  assert.not(await isRefused(ANONYMOUS.id, 2));
});

test('counts pages for their instance until they are parsed, and cuts one that is needed for others', async () => {
  const answers = new HeldBytes({ totalBytes: 100, ownerBytes: 60 }, () => 0);
  const due: (() => void)[] = [];
  const scheduler = schedulerWith({
    each: async () => undefined,
    turn: () => new Promise<void>((resolve) => due.push(resolve)),
  });
  const reader = new ListReader({ answers, scheduler });
  const page = (bytes: number) => reader.turn(answerOf(' '.repeat(bytes)));
  const [larger, smaller] = [thrownBy(page(40)), page(30)];
  assert.match(String(await larger), 'memory limit');
  assert.is(answers.bytes, 30);
  for (const resolve of due) resolve();
  await smaller;
  assert.is(answers.bytes, 0);
});

test('equal lists share their items, checked ones apart from others; those that end early share none', async () => {
  const reader = new ListReader();
  const pages = [pageOf(2, false), pageOf(2)];
  const check = { withheld: [], page: async () => [{ name: 'a' }], all: () => [{ name: 'b' }] };
  const read = (texts: readonly string[], more: object = {}): Promise<ReadList> =>
    reader.read('tools', { ...reading('a', texts), ...more }, (list) => list);
  const first = await read(pages);
  assert.is((await read(pages)).items, first.items);
  const checked = await read(pages, { check });
  assert.equal(checked.items, [{ name: 'b' }]);
  assert.is((await read(pages, { check })).items, checked.items);
  const other = await read([String(pages[0]), pageOf(2)]);
  assert.is(other.items.length, 4);
  assert.is.not(other.items, first.items);
  const cut = () => {
    const left = [...pages];
    const ask = async () => answerOf(left.shift() ?? '{}');
    const refuse = { kind: 'error', error: { code: -1, message: 'no' } } as const;
    const refusing = async () => (left.length > 1 ? ask() : { ...answerOf('{}'), event: refuse });
    return read([], { ask: refusing, refused: () => 'a page was refused' });
  };
  const [one, two] = [await cut(), await cut()];
  assert.equal([one.cut, one.items.length], ['a page was refused', 2]);
  assert.is.not(one.items, two.items);
});

test('has room for one list of the greatest size in a small process, and an eighth of a large one', () => {
  const [small, large] = [memoryBounds(1024 ** 3).lists, memoryBounds(64 * 1024 ** 3).lists];
  assert.ok(small.totalBytes >= 80_000_000 && small.totalBytes < 1024 ** 3 / 4, String(small.totalBytes));
  assert.equal(large, { totalBytes: 8 * 1024 ** 3, ownerBytes: 2 * 1024 ** 3 });
});

test.run();
