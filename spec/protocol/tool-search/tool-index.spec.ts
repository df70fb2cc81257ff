// The search for tools, judged by the labelled set: the right tool is among the first five for 95 of 100 queries. The half that the
// search was not adjusted on is judged on its own.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { TokenCounts } from '../../../src/protocol/tool-search/token-counts.ts';
import { type FindableTool, ToolIndex } from '../../../src/protocol/tool-search/tool-index.ts';
import { Vocabulary } from '../../../src/protocol/tool-search/vocabulary.ts';
import { suite } from '../../helpers/suite.ts';
import { schedulerWith } from '../../helpers/time/turns.ts';
import { isForTuning, type LabelledQuery, labelledQueries, labelledServers } from './labelled-set.ts';

const test = suite('tool index');

const tools = labelledServers().flatMap(({ server, tools }) =>
  tools.map((tool) => ({
    name: `${server}/${tool.name}`,
    own: tool.name,
    server,
    definition: tool,
  })),
);

const indexOf = (listed: readonly FindableTool[], scheduler = new TaskScheduler()) =>
  ToolIndex.of(listed, { clock: systemClock, scheduler });

/** Share of the queries, in percent, that have a right tool among the first five. */
async function shareFound(index: ToolIndex, queries: readonly LabelledQuery[]): Promise<number> {
  let found = 0;
  for (const { query, tools: right } of queries)
    if ((await index.find(query, 5)).some((name) => right.includes(name))) found += 1;
  return (100 * found) / queries.length;
}

test('finds the right tool for 95 of 100 labelled queries', async () => {
  const index = await indexOf(tools);
  const queries = labelledQueries();
  assert.ok((await shareFound(index, queries)) >= 95);
  const judged = await shareFound(
    index,
    queries.filter((query) => !isForTuning(query)),
  );
  assert.ok(judged >= 94.4, String(judged));
});

test('finds the same in the same order, in whichever order the tools were listed', async () => {
  const [index, other] = [await indexOf(tools), await indexOf(tools.toReversed())];
  for (const { query } of labelledQueries())
    assert.equal(await index.find(query, 10), await other.find(query, 10));
});

test('orders tools that fit equally well by their names', async () => {
  const equal = ['c', 'a', 'b'].map((name) => ({ name, own: 'ping', server: 's', definition: {} }));
  assert.equal(await (await indexOf(equal)).find('ping', 2), ['a', 'b']);
});

test('finds a tool by its name in any spelling', async () => {
  const index = await indexOf(tools);
  for (const query of ['slack_get_user_profile', 'slackGetUserProfile', 'SLACK GET USER PROFILE'])
    assert.is((await index.find(query, 1))[0], 'slack/slack_get_user_profile', query);
});

test('a word that no tool has finds those with a word that begins like it, and a known word finds itself only', async () => {
  const named = ['zephyrization', 'zephyrus', 'zep', 'other'];
  const index = await indexOf(named.map((own) => ({ name: own, own, server: 's', definition: {} })));
  assert.equal(await index.find('zephyriz', 5), ['zephyrization', 'zephyrus']);
  assert.equal(await index.find('zephyrus', 5), ['zephyrus']);
  for (const query of ['zep', 'zeph', 'zephyrologically'])
    assert.ok((await index.find(query, 5)).length <= 1, query);
});

test('finds nothing for a query without words, and in an empty list', async () => {
  const index = await indexOf(tools);
  for (const query of ['', ' ', '!?', 'the of', 'x'.repeat(100_000)])
    assert.equal(await index.find(query, 5), []);
  assert.equal(await (await indexOf([])).find('ping', 5), []);
});

test('reads definitions of any shape', async () => {
  const definitions: JsonObject[] = [
    { inputSchema: { properties: { depth: true, unit: { description: 7 } } } },
    { inputSchema: { properties: [] }, annotations: { title: 'Depth' } },
    { title: 5, description: null, inputSchema: false },
  ];
  const odd = definitions.map((definition, at) => ({
    ...{ name: `t${at}`, own: `t${at}`, server: 's' },
    definition,
  }));
  assert.equal(await (await indexOf(odd)).find('depth', 5), ['t1', 't0']);
});

test('adds up the scores, and counts the words of a query, in many tasks', async () => {
  const tasks: unknown[] = [];
  const scheduler = new TaskScheduler();
  const recorded = schedulerWith({
    each: (items, visit) =>
      scheduler.each(items, (item) => {
        tasks.push(item);
        return visit(item);
      }),
  });
  const wordsOf = (tool: number) => Array.from({ length: 100 }, (_, word) => `w${tool}x${word}`).join(' ');
  const large = Array.from({ length: 600 }, (_, tool) => ({
    ...{ name: `t${tool}`, own: `t${tool}`, server: 's' },
    definition: { description: wordsOf(tool) },
  }));
  const index = await indexOf(large, recorded);
  assert.ok(tasks.length >= large.length + (3 * 600 * 100) / 16_384, String(tasks.length));
  tasks.length = 0;
  await index.find('w1x1 w2x2 w3x3', 5);
  assert.is(tasks.length, 3);
});

test('searches at the same time do not disturb each other', async () => {
  const index = await indexOf(tools);
  const queries = labelledQueries()
    .slice(0, 50)
    .map(({ query }) => query);
  const alone: string[][] = [];
  for (const query of queries) alone.push(await index.find(query, 5));
  assert.equal(await Promise.all(queries.map((query) => index.find(query, 5))), alone);
});

test('callers take turns: a search does not wait for all those of another caller', async () => {
  const index = await indexOf(tools);
  const ended: string[] = [];
  const search = (ownerId: string) =>
    index.find('create an issue', 5, { ownerId }).then((names) => {
      ended.push(ownerId);
      return names;
    });
  const first = await search('ann');
  // Sign-ins of one user count together.
  const flood = Array.from({ length: 50 }, (_, number) => search(`grant:${number}@eve`));
  assert.equal(await search('ann'), first);
  assert.ok(ended.length <= 4, ended.join());
  await Promise.all(flood);
});

test('a search whose client left while it waited is not made', async () => {
  const index = await indexOf(tools);
  const leaving = new AbortController();
  const [made, left] = [index.find('ping', 5), index.find('ping', 5, { signal: leaving.signal })];
  leaving.abort();
  assert.is(await left.catch(() => 'not made'), 'not made');
  await made;
});

test('a tool has at most its share of the tokens, and those of its name first', async () => {
  const vocabulary = new Vocabulary();
  const counts = new TokenCounts(2, 3);
  for (const tool of [0, 1]) {
    counts.add(tool, 0, ['name'], vocabulary);
    counts.add(tool, 3, ['many', 'words', 'many', 'more', 'words'], vocabulary);
  }
  const { begins, tools } = await counts.postings(vocabulary.size, new TaskScheduler());
  assert.equal([...begins], [0, 2, 4, 6]);
  assert.equal([...tools], [0, 1, 0, 1, 0, 1]);
  assert.is(vocabulary.numberOf('more'), undefined);
});

test('a short list takes memory for the tokens that it has', () => {
  const vocabulary = new Vocabulary();
  const before = process.memoryUsage().arrayBuffers;
  const counts = new TokenCounts(5, 400_000);
  for (let tool = 0; tool < 5; tool++) counts.add(tool, 0, ['gets', 'the', 'weather'], vocabulary);
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
});

test('remembers at most 1,000 words with one beginning', () => {
  const vocabulary = new Vocabulary();
  for (let word = 0; word < 2_000; word++) vocabulary.numbered(`same${word}`);
  assert.is(vocabulary.beginningLike('sames').length, 1_000);
  assert.is(vocabulary.size, 2_000);
});

test.run();
