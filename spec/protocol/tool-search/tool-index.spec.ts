// The search for tools, judged by the labelled set: the right tool is among the first five for 95 of 100 queries. The half that the
// search was not adjusted on is judged on its own.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import { TaskScheduler } from '../../../src/domain/task-scheduler.ts';
import { type FindableTool, ToolIndex } from '../../../src/protocol/tool-search/tool-index.ts';
import { suite } from '../../helpers/suite.ts';
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

const indexOf = (listed: readonly FindableTool[]) => ToolIndex.of(listed, new TaskScheduler());

/** Share of the queries, in percent, that have a right tool among the first five. */
function shareFound(index: ToolIndex, queries: readonly LabelledQuery[]): number {
  const found = queries.filter(({ query, tools: right }) =>
    index.find(query, 5).some((name) => right.includes(name)),
  );
  return (100 * found.length) / queries.length;
}

test('finds the right tool for 95 of 100 labelled queries', async () => {
  const index = await indexOf(tools);
  const queries = labelledQueries();
  assert.ok(shareFound(index, queries) >= 95);
  const judged = queries.filter((query) => !isForTuning(query));
  assert.ok(shareFound(index, judged) >= 94.4, String(shareFound(index, judged)));
});

test('finds the same in the same order, in whichever order the tools were listed', async () => {
  const [index, other] = [await indexOf(tools), await indexOf(tools.toReversed())];
  for (const { query } of labelledQueries()) assert.equal(index.find(query, 10), other.find(query, 10));
});

test('orders tools that fit equally well by their names', async () => {
  const equal = ['c', 'a', 'b'].map((name) => ({ name, own: 'ping', server: 's', definition: {} }));
  assert.equal((await indexOf(equal)).find('ping', 2), ['a', 'b']);
});

test('finds a tool by its name in any spelling', async () => {
  const index = await indexOf(tools);
  for (const query of ['slack_get_user_profile', 'slackGetUserProfile', 'SLACK GET USER PROFILE'])
    assert.is(index.find(query, 1)[0], 'slack/slack_get_user_profile', query);
});

test('a word that no tool has finds those with a word that begins like it, and a known word finds itself only', async () => {
  const named = ['zephyrization', 'zephyrus', 'zep', 'other'];
  const index = await indexOf(named.map((own) => ({ name: own, own, server: 's', definition: {} })));
  assert.equal(index.find('zephyriz', 5), ['zephyrization', 'zephyrus']);
  assert.equal(index.find('zephyrus', 5), ['zephyrus']);
  for (const query of ['zep', 'zeph', 'zephyrologically']) assert.ok(index.find(query, 5).length <= 1, query);
});

test('finds nothing for a query without words, and in an empty list', async () => {
  const index = await indexOf(tools);
  for (const query of ['', ' ', '!?', 'the of', 'x'.repeat(100_000)]) assert.equal(index.find(query, 5), []);
  assert.equal((await indexOf([])).find('ping', 5), []);
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
  assert.equal((await indexOf(odd)).find('depth', 5), ['t1', 't0']);
});

test.run();
