import * as assert from 'uvu/assert';
import { optionName } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('command');

test('names an option without its dashes', () => {
  const names = ['--port <number>', '--json', '--no-auth', '--working-dir <path>'].map((flags) =>
    optionName({ flags, description: '' }),
  );
  assert.equal(names, ['port', 'json', 'auth', 'working-dir']);
});

test('is in the table once', () => {
  const names = COMMANDS.map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
});

test('declares each option once', () => {
  for (const { name, options } of COMMANDS) {
    const flags = options.map((option) => option.flags.replace(/ .*/, ''));
    assert.is(new Set(flags).size, flags.length, name);
  }
});

test.run();
