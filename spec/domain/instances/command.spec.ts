// How a command line is split into words, without a shell, and which commands are allowed.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { type CommandRules, commandRefusal, splitCommand } from '../../../src/domain/instances/command.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('command lines');

function wordsOf(text: string): readonly string[] {
  const result = splitCommand(text);
  assert.ok('words' in result, `expected words of ${text}`);
  return result.words;
}

/** The meaning of quotes and backslashes. */
const WORDS: readonly (readonly [what: string, text: string, words: readonly string[]])[] = [
  ['splits at white space', 'npx -y  @s/server@1.2.3\tstdio\n', ['npx', '-y', '@s/server@1.2.3', 'stdio']],
  ['has no words in an empty text', '', []],
  ['has no words in white space', ' \t\r\n ', []],
  ['joins quoted and plain parts into one word', `a"b c"'d e'f`, ['ab cd ef']],
  ['keeps empty words', `'' "" x`, ['', '', 'x']],
  ['keeps every character in single quotes', String.raw`'a\b "$HOME" \\'`, [String.raw`a\b "$HOME" \\`]],
  [
    'unescapes only quotes and backslashes in double quotes',
    String.raw`"say \"hi\" \n a\\b $HOME"`,
    [String.raw`say "hi" \n a\b $HOME`],
  ],
  [
    'unescapes a space, a quote and a backslash outside quotes',
    String.raw`my\ file it\'s \" a\\b`,
    ['my file', "it's", '"', String.raw`a\b`],
  ],
  ['joins lines that end in a backslash', 'npx \\\n  -y \\\r\n  server', ['npx', '-y', 'server']],
  [
    'keeps backslashes of Windows paths',
    String.raw`C:\tools\run.exe --dir D:\data "C:\Program Files\node.exe" 'D:\data\'`,
    [
      String.raw`C:\tools\run.exe`,
      '--dir',
      String.raw`D:\data`,
      String.raw`C:\Program Files\node.exe`,
      'D:\\data\\',
    ],
  ],
  [
    'expands nothing that a shell would expand',
    '$HOME `id` $(id) *.ts ~ a;b a|b a&&b >out #note',
    ['$HOME', '`id`', '$(id)', '*.ts', '~', 'a;b', 'a|b', 'a&&b', '>out', '#note'],
  ],
];

for (const [what, text, words] of WORDS) test(what, () => assert.equal(wordsOf(text), words));

test('names the quote that is never closed', () => {
  assert.equal(splitCommand(`run 'it`), { problem: "the ' at character 5 is never closed" });
  assert.equal(splitCommand(String.raw`"C:\data\"`), { problem: 'the " at character 1 is never closed' });
});

test('splits any words with POSIX quoting into the same words', () => {
  const quoted = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  const escaped = (word: string) => word.replaceAll(/[ \t'"\\]/g, String.raw`\$&`);
  const anyWord = fc.string({
    unit: fc.constantFrom('a', 'Z', '0', ' ', '\t', "'", '"', '\\', '$', 'é', '😀'),
  });
  // Backslashes cannot write an empty word.
  const escapable = anyWord.filter((word) => word !== '');
  const pair = fc.oneof(
    anyWord.map((word) => [word, quoted(word)] as const),
    escapable.map((word) => [word, escaped(word)] as const),
  );
  fc.assert(
    fc.property(fc.array(pair), (pairs) => {
      const found = wordsOf(pairs.map(([, written]) => written).join(' '));
      assert.equal(
        found,
        pairs.map(([word]) => word),
      );
    }),
    { numRuns: 1_000 },
  );
});

const rules: CommandRules = {
  allowed: [
    ['npx', '-y', '@scope/server@1.2.3', '*path'],
    ['serve'],
    ['*anything', 'x'],
    ['tool', '*', '--flag'],
  ],
  declaredNames: ['MEMORY_FILE', 'NODE_OPTIONS', 'LD_PRELOAD'],
};
const refused = (...words: string[]): boolean => commandRefusal({ words }, rules) !== undefined;

for (const words of [
  ['npx', '-y', '@scope/server@1.2.3', '/srv/data'],
  ['npx', '-y', '@scope/server@1.2.3', 'two words'],
  ['npx', '-y', '@scope/server@1.2.3', '*path'],
  ['serve'],
  ['tool', 'a', '--flag'],
]) {
  test(`allows ${JSON.stringify(words)}`, () => assert.not(refused(...words)));
}

for (const words of [
  [],
  [''],
  ['serve', ''],
  ['tool', 'a', '--flags'],
  ['npx', '-y', '@scope/server@1.2.3'],
  ['npx', '-y', '@scope/server@1.2.3', ''],
  ['npx', '-y', '@scope/server@1.2.3', '-x'],
  ['npx', '-y', '@scope/server@1.2.3', '/srv', 'more'],
  ['npx', '-y', '@scope/server@1.2.4', '/srv'],
  ['NPX', '-y', '@scope/server@1.2.3', '/srv'],
  ['npx -y @scope/server@1.2.3 /srv'],
  // The program itself is not a wildcard.
  ['sh', 'x'],
  ['*anything', 'x'],
]) {
  test(`refuses ${JSON.stringify(words)}`, () => assert.ok(refused(...words)));
}

test('allows no command when the list is empty', () => {
  assert.ok(commandRefusal({ words: ['serve'] }, { allowed: [], declaredNames: [] }));
  assert.ok(commandRefusal({ words: [] }, { allowed: [[]], declaredNames: [] }), 'no command at all');
});

test('refuses a working directory', () => {
  assert.match(String(commandRefusal({ words: ['serve'], workingDir: '/' }, rules)), /working directory/);
});

test('refuses variables that are not declared, without repeating their values', () => {
  assert.is(commandRefusal({ words: ['serve'], env: { MEMORY_FILE: '/x' } }, rules), undefined);
  for (const name of ['OTHER', 'memory_file', 'constructor', '__proto__']) {
    const refusal = String(commandRefusal({ words: ['serve'], env: { [name]: 'secret' } }, rules));
    assert.match(refusal, /does not declare/);
    assert.not.match(refusal, /secret/);
  }
});

test('allows declared variables that decide nothing about code', () => {
  const names = [
    'NODE_ENV',
    'HTTPS_PROXY',
    'GITHUB_TOKEN',
    'GIT_AUTHOR_NAME',
    'HOMEPAGE',
    'PATHS',
    'ENVIRONMENT',
    'TZ',
  ];
  for (const name of names)
    assert.is(
      commandRefusal({ words: ['serve'], env: { [name]: 'x' } }, { ...rules, declaredNames: [name] }),
      undefined,
    );
});

for (const name of [
  ...['PATH', 'Path', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'DYLD_INSERT_LIBRARIES', 'NODE_OPTIONS'],
  ...['node_options', 'PYTHONPATH', 'PYTHONSTARTUP', 'BASH_ENV', 'ENV', 'PERL5OPT', 'RUBYOPT'],
  ...[
    'NPM_CONFIG_NODE_OPTIONS',
    'npm_config_registry',
    'UV_INDEX_URL',
    'PIP_INDEX_URL',
    'HOME',
    'XDG_CONFIG_HOME',
  ],
  ...[
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'NODE_COMPILE_CACHE',
    'SSL_CERT_FILE',
    'OPENSSL_CONF',
    'GIT_SSH_COMMAND',
    'GIT_DIR',
    'GIT_WORK_TREE',
    'GIT_COMMON_DIR',
  ],
  ...['CARGO_HOME', 'GOPROXY', 'GOFLAGS', 'GOENV', 'KUBECONFIG', 'AWS_CONFIG_FILE'],
  ...['_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'DOTNET_STARTUP_HOOKS', 'PS4', 'DOCKER_HOST'],
]) {
  test(`refuses the variable ${name}, even when it is declared`, () => {
    const declared = { ...rules, declaredNames: [name] };
    const refusal = String(commandRefusal({ words: ['serve'], env: { [name]: 'x' } }, declared));
    assert.match(refusal, /what code runs/);
  });
}

test.run();
