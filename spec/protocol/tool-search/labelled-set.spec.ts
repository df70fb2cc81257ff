// The labelled set is what its judgements need: large, its names exist, and a third of its queries in words that the tools do not have.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { isForTuning, type LabelledTool, labelledQueries, labelledServers } from './labelled-set.ts';

const test = suite('labelled set of tool search');

const servers = labelledServers();
const queries = labelledQueries();
const tools = new Map(
  servers.flatMap(({ server, tools }) => tools.map((tool) => [`${server}/${tool.name}`, tool])),
);

test('has many tools of many servers and many queries', () => {
  assert.ok(servers.length >= 12 && tools.size >= 500 && queries.length >= 300);
  assert.is(new Set(queries.map(({ query }) => query)).size, queries.length);
});

test('names tools that exist', () => {
  const unknown = queries.flatMap(({ tools: right }) => right.filter((name) => !tools.has(name)));
  assert.equal(unknown, []);
});

test('has a third of its queries in words that the tools do not have', () => {
  const ofUsers = queries.filter(({ words }) => words === 'user');
  assert.ok(ofUsers.length * 3 >= queries.length, `${ofUsers.length} of ${queries.length}`);
  for (const { query, tools: right } of ofUsers)
    for (const name of right) {
      const service = new Set(name.split('/')[0]?.split('-'));
      const words = wordsOf(query).filter((word) => !FUNCTION_WORDS.has(word) && !service.has(word));
      const text = textOf(tools.get(name) as LabelledTool);
      assert.equal(
        words.filter((word) => text.has(singular(word))),
        [],
        `${query}: ${name}`,
      );
    }
});

test('is split in two halves', () => {
  const share = queries.filter(isForTuning).length / queries.length;
  assert.ok(share > 0.4 && share < 0.6, String(share));
});

function textOf({ name, title = '', description, inputSchema }: LabelledTool): Set<string> {
  const args = Object.entries(inputSchema.properties).flatMap(([key, { description }]) => [key, description]);
  return new Set(wordsOf([name, title, description, ...args].join(' ')).map(singular));
}

function wordsOf(text: string): string[] {
  return (
    text
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  );
}

function singular(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}

const FUNCTION_WORDS = new Set(
  `a an the of to in on at for from with by into out up down off over and or not no is are was were be been do does did have has had i
  me my mine we us our you your it its he she they them their this that these those what which who whose where when why how will would
  can could should please there here some any all one once more most so as if then than too also again somewhere else am let s t`.split(
    /\s+/,
  ),
);

test.run();
