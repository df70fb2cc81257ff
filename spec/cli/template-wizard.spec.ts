import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import * as assert from 'uvu/assert';
import { Cancelled } from '../../src/cli/failures.ts';
import { askTemplate, type TemplateAnswers } from '../../src/cli/template-wizard.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template wizard');
const nothing: TemplateAnswers = {
  ...{ id: undefined, description: undefined, command: undefined, endpoint: undefined },
};

/** A person who types each answer once its question is shown. */
async function answer(
  given: TemplateAnswers,
  script: readonly (readonly [question: string, typed: string])[],
) {
  const input = new PassThrough();
  const output = new PassThrough();
  const rest = [...script];
  let shown = '';
  output.on('data', (chunk: Buffer) => {
    shown += stripVTControlCharacters(chunk.toString('utf8'));
    const [question, typed] = rest[0] ?? [];
    if (question === undefined || typed === undefined || !shown.includes(question)) return;
    rest.shift();
    shown = '';
    setImmediate(() => input.write(typed));
  });
  const answers = await askTemplate(given, { input, output });
  assert.equal(rest, []);
  return answers;
}

test('asks for everything, and again after a bad answer', async () => {
  const answers = await answer(nothing, [
    ['Id, used in URLs', 'Bad Id\r'],
    ['lower-case letters', '\u007f'.repeat(6)],
    ['Id, used in URLs', 'search\r'],
    ['Display name', 'Search\r'],
    ['What does the server do?', 'Searches.\r'],
    ['Tags', 'files, text\r'],
    ['How is it reached?', '\r'],
    ['Command with its words', 'node server.js\r'],
  ]);
  assert.equal(answers, {
    ...nothing,
    ...{ id: 'search', name: 'Search', description: 'Searches.', tags: ['files', 'text'] },
    command: 'node server.js',
  });
});

test('does not ask for values that were given', async () => {
  const given = { ...nothing, id: 'far', description: 'Is far away.', endpoint: 'http://127.0.0.1:9' };
  const answers = await answer(given, [
    ['Display name', 'Far\r'],
    ['Tags', '\r'],
  ]);
  assert.equal(answers, { ...given, name: 'Far', tags: [] });
});

for (const [key, typed] of [
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004'],
] as const) {
  test(`throws Cancelled at ${key}`, async () => {
    const cancelled = answer(nothing, [['Id, used in URLs', typed]]);
    assert.instance(await thrownBy(cancelled), Cancelled);
  });
}

test.run();
