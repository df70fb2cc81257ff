// How words become a command and its input, cac's traps included.

import * as assert from 'uvu/assert';
import type { CommandDefinition } from '../../src/cli/command.ts';
import { type CommandLine, readCommandLine } from '../../src/cli/command-line.ts';
import { UsageError } from '../../src/cli/failures.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('command line');

const commands: readonly CommandDefinition[] = [
  command('gateway start', '', ['--port <number>', '--no-auth', '--demo', '--sync', '--auth']),
  command('gateway register', '<template>', ['--id <id>', '--working-dir <path>', '--json']),
  command('config', '', ['--json']),
];

test('finds a command of two words and its positionals', () => {
  const { name, positionals } = run('gateway', 'register', 'everything');
  assert.equal({ name, positionals }, { name: 'gateway register', positionals: ['everything'] });
});

test('keeps values exactly as they were typed', () => {
  for (const value of ['007', '1e3', '0x10', '', ' ', '-', '-1', 'true', '\u00015', 'a=b', '1.0']) {
    assert.is(run('gateway', 'register', 't', `--id=${value}`).text('id'), value, `--id=${value}`);
    assert.is(run('gateway', 'register', 't', '--id', value).text('id'), value, `--id ${value}`);
  }
});

test('keeps positionals exactly as they were typed', () => {
  assert.equal(run('gateway', 'register', '007').positionals, ['007']);
  assert.equal(run('gateway', 'register', '--json', '1e3').positionals, ['1e3']);
});

test('gives every value of a repeatable option, in order', () => {
  const line = run('gateway', 'register', 't', '--env', 'A=1', '--env', 'B=2=3', '--env=C=');
  assert.equal(line.texts('env'), ['A=1', 'B=2=3', 'C=']);
});

test('tells a switch, its negation and its absence apart', () => {
  assert.is(run('gateway', 'start', '--demo').switch('demo'), true);
  assert.is(run('gateway', 'start', '--no-auth').switch('auth'), false);
  assert.is(run('gateway', 'start').switch('auth'), undefined);
});

test('takes true and false as values of a switch', () => {
  assert.is(run('gateway', 'start', '--demo=true').switch('demo'), true);
  assert.is(run('gateway', 'start', '--auth=false').switch('auth'), false);
  assert.is(run('gateway', 'start', '--auth=No').switch('auth'), false);
});

test('refuses a switch together with its negation', () => {
  for (const words of [
    ['--auth', '--no-auth'],
    ['--no-auth', '--auth'],
    ['--auth', '--auth=no'],
  ])
    assert.throws(
      () => run('gateway', 'start', ...words),
      (error: Error) =>
        error instanceof UsageError && error.message === '--auth cannot be combined with --no-auth',
    );
});

test('reads option names of several words', () => {
  assert.is(run('gateway', 'register', 't', '--working-dir', 'here').text('working-dir'), 'here');
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
  const line = read('gateway', 'start', '--port', '--help');
  assert.is(line.kind === 'help' && line.command.name, 'gateway start');
});

const refusals: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    'an unknown command',
    ['confg'],
    /unknown command "stagedoor confg"; did you mean "npx stagedoor config"\?/,
  ],
  ['an unknown command of a group', ['gateway', 'strat'], /did you mean "npx stagedoor gateway start"\?/],
  ['a command whose group was forgotten', ['start'], /did you mean "npx stagedoor gateway start"\?/],
  [
    'a command that resembles none',
    ['gateway', 'audit'],
    /^unknown command "stagedoor gateway audit"; see npx stagedoor gateway --help$/,
  ],
  ['a group that resembles none', ['drain'], /^unknown command "stagedoor drain"; see npx stagedoor --help$/],
  ['a group that was not typed right', ['gatway'], /did you mean "npx stagedoor gateway"\?$/],
  [
    'an option that resembles none',
    ['config', '--colour'],
    /unknown option --colour for "stagedoor config"; see npx stagedoor config --help$/,
  ],
  [
    'an unknown option',
    ['gateway', 'start', '--prot', '1'],
    /unknown option --prot for "stagedoor gateway start"; did you mean --port\?/,
  ],
  ['an unknown option with a value', ['gateway', 'start', '--prot=1'], /unknown option --prot for/],
  ['an unknown negation', ['gateway', 'start', '--no-demo'], /unknown option --no-demo/],
  ['an option that would reach the prototype', ['config', '--__proto__', 'x'], /unknown option --__proto__/],
  ['an option before the command', ['--json', 'config'], /unknown option --json for "stagedoor"/],
  ['a value that is missing', ['gateway', 'start', '--port'], /`--port <number>` value is missing/],
  [
    'a value that is an option',
    ['gateway', 'start', '--port', '--demo'],
    /`--port <number>` value is missing/,
  ],
  [
    'an option given twice',
    ['gateway', 'start', '--port', '1', '--port', '2'],
    /--port can be given only once/,
  ],
  [
    'a positional that is missing',
    ['gateway', 'register'],
    /^missing required argument <template>; see npx stagedoor gateway register --help$/,
  ],
  ['a value for a switch', ['config', '--json=maybe'], /--json takes no value, not "maybe"/],
  ['a negation that there is not', ['config', '--json=false'], /--json takes no value, not "false"/],
  [
    'a positional too many',
    ['gateway', 'register', 'a', '7'],
    /^unexpected argument "7"; see npx stagedoor gateway register --help$/,
  ],
  ['words after two dashes', ['config', '--', 'a'], /unexpected arguments after "--"/],
];
for (const [what, words, message] of refusals) {
  test(`refuses ${what} with one line`, () => {
    assert.throws(
      () => read(...words),
      (error: unknown) =>
        error instanceof UsageError && message.test(error.message) && !error.message.includes('\n'),
    );
  });
}

test('tells all unknown options at once, each with its own advice', () => {
  const typed = ['--prot', '1', '--colour', '--prot=2', '--demmo'];
  assert.throws(
    () => read('gateway', 'start', ...typed),
    ({ message }: Error) => {
      const [option, unlike, mistyped, ...more] = message.split('\n');
      assert.match(
        String(option),
        /^unknown option --prot for "stagedoor gateway start"; did you mean --port\?$/,
      );
      assert.match(String(unlike), /^unknown option --colour for [^;]+; see .* --help$/);
      assert.match(String(mistyped), /^unknown option --demmo for [^;]+; did you mean --demo\?$/);
      return more.length === 0;
    },
  );
});

test.run();

function command(name: string, positionals: string, flags: readonly string[]): CommandDefinition {
  const options = [
    ...flags.map((each) => ({ flags: each, description: '' })),
    { flags: '--env <KEY=VALUE>', description: '', repeatable: true },
  ];
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
