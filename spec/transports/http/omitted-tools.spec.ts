// What is told of tools that lists come without: each once, and again when it is news.

import * as assert from 'uvu/assert';
import { MOST_REPORTED, NAME_UNITS, OmittedTools } from '../../../src/transports/http/tool-headers.ts';
import type { OmittedTool } from '../../../src/transports/transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('omitted tools');

function heard(told?: Map<string, string>) {
  const tools = new OmittedTools(told);
  const news: OmittedTool[] = [];
  tools.omitted$.subscribe((one) => news.push(one));
  return { tools, news, names: () => news.map(({ tool }) => tool) };
}

test('are told once, however often a list comes without them', () => {
  const { tools, news } = heard();
  for (let list = 0; list < 3; list += 1) {
    tools.omit('a', 'it is bad');
    tools.omit('b', 'it is bad');
  }
  assert.equal(news, [
    { tool: 'a', reason: 'it is bad' },
    { tool: 'b', reason: 'it is bad' },
  ]);
});

test('are told again for another reason, and after they were right', () => {
  const { tools, news } = heard();
  tools.allow('a');
  for (const reason of ['bad', 'worse', 'bad']) tools.omit('a', reason);
  tools.allow('a');
  tools.omit('a', 'bad');
  assert.equal(
    news.map(({ reason }) => reason),
    ['bad', 'worse', 'bad', 'bad'],
  );
});

test('are not told again by the next opening of the same instance', () => {
  const told = new Map<string, string>();
  heard(told).tools.omit('a', 'bad');
  const { tools, names } = heard(told);
  tools.omit('a', 'bad');
  tools.omit('b', 'bad');
  assert.equal(names(), ['b']);
});

test('are no more than there is room for, until one of them is right', () => {
  const told = new Map<string, string>();
  const { tools, names } = heard(told);
  for (let list = 0; list < 3; list += 1) {
    for (let at = 0; at < 2 * MOST_REPORTED; at += 1) tools.omit(`tool-${at}`, 'bad');
  }
  assert.equal([names().length, told.size], [MOST_REPORTED, MOST_REPORTED]);
  tools.allow('tool-0');
  tools.omit('late', 'bad');
  assert.equal([names().at(-1), told.size], ['late', MOST_REPORTED]);
});

test('are told by the beginning of a long name, and are not taken for one another by it', () => {
  const told = new Map<string, string>();
  const { tools, names } = heard(told);
  const [one, two] = ['1', '2'].map((end) => 'x'.repeat(100_000) + end);
  for (let list = 0; list < 2; list += 1) {
    tools.omit(one ?? '', 'bad');
    tools.omit(two ?? '', 'worse');
  }
  assert.equal(names(), Array(2).fill('x'.repeat(NAME_UNITS)));
  assert.ok([...told.keys()].every((key) => key.length <= NAME_UNITS));
});

test.run();
