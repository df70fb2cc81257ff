import * as assert from 'uvu/assert';
import { CLIENT_OPTIONS, gatewayOf } from '../../src/cli/client-options.ts';
import { CommandInput, optionName } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { suite } from '../helpers/suite.ts';
import { recordingTerminal } from './recording-terminal.ts';

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

const input = suite('command input');
const bounds = { minimum: 1, maximum: 10 };

input('reads numbers within their bounds', () => {
  assert.is(withValue('10').number('n', bounds), 10);
  assert.is(withValue('2.5').number('n', { ...bounds, decimals: true }), 2.5);
  assert.is(new CommandInput([], new Map()).number('n', bounds), undefined);
});

input('refuses what is no such number and says what is expected', () => {
  for (const text of ['0', '11', '2.5', 'x', '', ' ', 'Infinity']) {
    assert.throws(
      () => withValue(text).number('n', bounds),
      (error: Error) => error.message === `--n must be a whole number from 1 to 10, not "${text}"`,
    );
  }
});

input('refuses a second value where one is meant', () => {
  assert.throws(() => withValue(['a', 'b']).text('n'), /--n can be given only once/);
});

input('takes the last of repeated switches', () => {
  assert.is(withValue([true, false]).switch('n'), false);
});

input('names a missing positional instead of making one up', () => {
  assert.throws(() => new CommandInput(['a'], new Map()).positional(1), /missing required argument/);
});

input.run();

function withValue(value: string | readonly (string | boolean)[]): CommandInput {
  return new CommandInput([], new Map([['n', value]]));
}

const clientOptions = suite('client options');

clientOptions('are --url and --json', () => {
  assert.equal(CLIENT_OPTIONS.map(optionName), ['url', 'json']);
});

clientOptions('name the gateway, by option or by environment', async () => {
  const terminal = recordingTerminal({ env: { STAGEDOOR_URL: 'http://127.0.0.1:2' } });
  const named = await gatewayOf(new CommandInput([], new Map([['url', 'http://127.0.0.1:1/']])), terminal);
  const other = await gatewayOf(new CommandInput([], new Map()), terminal);
  assert.equal([named.url, other.url], ['http://127.0.0.1:1', 'http://127.0.0.1:2']);
});

clientOptions.run();
