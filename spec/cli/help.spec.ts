import * as assert from 'uvu/assert';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { commandHelp, overview } from '../../src/cli/help.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('help');

test('lists every command that is built, and none that is not', () => {
  const text = overview(COMMANDS);
  for (const { name, notYet } of COMMANDS) assert.is(text.includes(`  ${name}`), !notYet, name);
});

test('shows only the commands of a group', () => {
  assert.match(overview(COMMANDS, 'gateway'), 'gateway list');
  assert.not.match(overview(COMMANDS, 'gateway'), '  config');
});

test('shows usage, options and examples of each command', () => {
  for (const command of COMMANDS.filter(({ notYet }) => !notYet)) {
    const text = commandHelp(command);
    assert.match(text, `stagedoor ${command.name}`);
    for (const { flags, notYet } of command.options) {
      assert.is(text.includes(`  ${flags} `), !notYet, `${command.name} ${flags}`);
    }
    for (const example of command.examples ?? []) assert.match(text, `  npx stagedoor ${example}`);
  }
});

test.run();
