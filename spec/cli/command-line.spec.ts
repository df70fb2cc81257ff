// How arguments become a command and its input, and which are refused with one line.

import * as assert from 'uvu/assert';
import { type Command, CommandInput, optionsOf } from '../../src/cli/command.ts';
import { type CommandLine, readCommandLine } from '../../src/cli/command-line.ts';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { UsageError } from '../../src/cli/failures.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('command line');

const commands: readonly Command[] = [
  command('gateway start', '', ['--port <number>', '--no-auth', '--demo', '--sync', '--auth']),
  command('instance register', '<template>', ['--id <id>', '--working-dir <path>', '--json']),
  command('config', '', ['--json']),
];

test('keeps values exactly as they were typed', () => {
  for (const value of ['007', '1e3', '0x10', '', ' ', '-', '-1', 'true', '\u00015', 'a=b', '1.0']) {
    assert.is(run('instance', 'register', 't', `--id=${value}`).text('id'), value, `--id=${value}`);
    assert.is(run('instance', 'register', 't', '--id', value).text('id'), value, `--id ${value}`);
  }
  const { name, positionals } = run('instance', 'register', '--json', '1e3');
  assert.equal([name, positionals], ['instance register', ['1e3']]);
});

test('gives every value of a repeatable option, in order', () => {
  const line = run('instance', 'register', 't', '--env', 'A=1', '--env', 'B=2=3', '--env=C=');
  assert.equal(line.texts('env'), ['A=1', 'B=2=3', 'C=']);
});

test('distinguishes a switch, its negation and its absence', () => {
  const switches = (...words: string[]) => run('gateway', 'start', ...words);
  assert.is(switches('--demo').switch('demo'), true);
  assert.is(switches('--no-auth').switch('auth'), false);
  assert.is(switches().switch('auth'), undefined);
});

test('shows the version on every level', () => {
  for (const words of [['version'], ['--version'], ['gateway', '-v'], ['gateway', 'start', '--version']]) {
    assert.equal(read(...words), { kind: 'version' });
  }
});

test('shows help on every level', () => {
  assert.equal(read('help'), { kind: 'overview', group: undefined, isRequested: true });
  assert.equal(read('--help'), { kind: 'overview', group: undefined, isRequested: true });
  assert.equal(read('gateway', '-h'), { kind: 'overview', group: 'gateway', isRequested: true });
  assert.equal(read('gateway'), { kind: 'overview', group: 'gateway', isRequested: false });
  assert.equal(read(), { kind: 'overview', group: undefined, isRequested: false });
  assert.equal(read('help', 'gateway'), { kind: 'overview', group: 'gateway', isRequested: true });
  assert.equal(read('gateway', 'help'), { kind: 'overview', group: 'gateway', isRequested: true });
  for (const words of [
    ['gateway', 'start', '--port', '--help'],
    ['help', 'gateway', 'start'],
  ]) {
    const line = read(...words);
    assert.is(line.kind === 'help' && line.command.name, 'gateway start');
  }
});

const refusals: readonly (readonly [string, string, RegExp])[] = [
  ['an unknown command', 'confg', /unknown command "stagedoor confg"; did you mean "npx stagedoor config"\?/],
  ['an unknown command of a group', 'gateway strat', /did you mean "npx stagedoor gateway start"\?/],
  ['a command whose group was forgotten', 'start', /did you mean "npx stagedoor gateway start"\?/],
  ['a command unlike any other', 'gateway audit', /^unknown [^;]+; see npx stagedoor gateway --help$/],
  ['a group unlike any other', 'drain', /^unknown command "stagedoor drain"; see npx stagedoor --help$/],
  ['a group that was misspelt', 'gatway', /did you mean "npx stagedoor gateway"\?$/],
  ['an option unlike any other', 'config --colour', /; see npx stagedoor config --help$/],
  ['an unknown option', 'gateway start --prot 1', /--prot for "[a-z ]+ start"; did you mean --port\?$/],
  ['an unknown negation', 'gateway start --no-demo', /unknown option --no-demo/],
  ['a short option that no option has', 'config -undefined', /^unknown option -undefined for/],
  ['an option that would reach the prototype', 'config --__proto__ x', /unknown option --__proto__/],
  ['an option before the command', '--json config', /^unknown command "stagedoor --json"; see npx/],
  ['a missing value', 'gateway start --port', /`--port <number>` value is missing/],
  ['a value that is an option', 'gateway start --port --demo', /`--port <number>` value is missing/],
  ['a missing positional', 'instance register', /^missing required argument <template>; see npx stagedoor/],
  ['a value for a switch', 'gateway start --auth=false', /^--auth takes no value; see npx/],
  ['an extra positional', 'instance register a 7', /^unexpected argument "7"; see npx stagedoor instance r/],
  ['two dashes', 'config -- a', /^unknown option -- for "stagedoor config"; see npx/],
  ['a switch with its negation', 'gateway start --auth --no-auth', /^--auth cannot be combined with --no-/],
  ['a switch before its negation', 'gateway start --no-auth --auth', /^--auth cannot be combined with/],
];
for (const [what, line, message] of refusals) {
  test(`refuses ${what} with one line`, () => {
    assert.throws(
      () => read(...line.split(' ')),
      (error: unknown) =>
        error instanceof UsageError && message.test(error.message) && !error.message.includes('\n'),
    );
  });
}

test('takes the former name of a command', () => {
  const named = (line: string) => {
    const found = readCommandLine(COMMANDS, line.split(' '));
    return found.kind === 'run' ? [found.command.name, ...found.input.positionals].join(' ') : found.kind;
  };
  assert.is(named('gateway register search'), 'instance register search');
  assert.is(named('users set ada'), 'user set ada');
  assert.is(named('gateway users --json'), 'user list');
  assert.is(named('gateway grants revoke g1'), 'grant revoke g1');
  assert.is(named('gateway clients'), 'client list');
  assert.is(named('gateway clients add build'), 'client add build');
  assert.is(named('gateway restart search one'), 'instance restart search one');
  assert.is(named('gateway restart --state-dir here'), 'gateway restart');
  assert.is(named('help gateway call'), 'help');
});

test('a word that every object has as a field is an unknown command', () => {
  for (const word of ['constructor', 'toString', '__proto__', 'gateway constructor'])
    assert.throws(() => readCommandLine(COMMANDS, word.split(' ')), /unknown command/);
});

test('suggests a command of the same group, with the fewest words', () => {
  const suggested = (line: string) => {
    try {
      readCommandLine(COMMANDS, line.split(' '));
    } catch (error) {
      return /did you mean "npx stagedoor ([^"]*)"\?$/.exec((error as Error).message)?.[1];
    }
    return 'it is a command';
  };
  for (const [line, suggestion] of [
    ['gateway strat', 'gateway start'],
    ['api-key revok', 'api-key revoke'],
    ['grant revok', 'grant revoke'],
    ['revok', 'api-key revoke'],
    ['list', 'instance list'],
    ['template lst', 'template list'],
    ['gateway add', undefined],
    ['gateway validate', 'template validate'],
    ['user register', 'user create'],
    ['instance remove', 'instance deregister'],
    ['api-key delete', 'api-key revoke'],
    ['template ls', 'template list'],
    ['session delete', 'session end'],
    ['instances list', 'instance'],
  ] as const)
    assert.is(suggested(line), suggestion, line);
});

test('declares each command and each option once', () => {
  const names = COMMANDS.map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  for (const command of COMMANDS) {
    const flags = optionsOf(command).map((option) => option.flags.replace(/ .*/, ''));
    assert.is(new Set(flags).size, flags.length, command.name);
  }
});

test('reads numbers within their bounds, and refuses others with the expected range', () => {
  const bounds = { minimum: 1, maximum: 10 };
  const withValue = (value: string) => new CommandInput([], new Map([['n', value]]));
  assert.is(withValue('10').number('n', bounds), 10);
  assert.is(new CommandInput([], new Map()).number('n', bounds), undefined);
  for (const text of ['0', '11', '2.5', 'x', '', ' ', 'Infinity']) {
    assert.throws(
      () => withValue(text).number('n', bounds),
      (error: Error) => error.message === `--n must be a whole number from 1 to 10, not "${text}"`,
    );
  }
});

test('takes the last of repeated switches, and refuses a repeated text', () => {
  const input = new CommandInput(
    ['a'],
    new Map([
      ['n', [true, false]],
      ['m', ['a', 'b']],
    ]),
  );
  assert.is(input.switch('n'), false);
  assert.throws(() => input.text('m'), /--m can be given only once/);
  assert.throws(() => input.positional(1), /missing required argument/);
});

test.run();

function command(name: string, positionals: string, flags: readonly string[]): Command {
  const options = Object.fromEntries([...flags, '--env <KEY=VALUE>...'].map((each) => [each, '']));
  return { name, positionals, summary: '', options, run: async () => 0 };
}

function read(...words: string[]): CommandLine {
  return readCommandLine(commands, words);
}

function run(...words: string[]) {
  const line = read(...words);
  if (line.kind !== 'run') throw new Error(`it became ${line.kind}`);
  const { input, command } = line;
  return Object.assign(input, { name: command.name });
}
