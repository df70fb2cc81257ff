import * as assert from 'uvu/assert';
import { type CommandRules, commandRefusal } from '../../src/domain/command.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the command policy');
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
  ['npx'],
  ['npx', '-y', '@scope/server@1.2.3'],
  ['npx', '-y', '@scope/server@1.2.3', ''],
  ['npx', '-y', '@scope/server@1.2.3', '-x'],
  ['npx', '-y', '@scope/server@1.2.3', '--registry=http://evil.example'],
  ['npx', '-y', '@scope/server@1.2.3', '/srv', 'more'],
  ['npx', '-y', '@scope/server@1.2.4', '/srv'],
  ['npx', '-Y', '@scope/server@1.2.3', '/srv'],
  ['NPX', '-y', '@scope/server@1.2.3', '/srv'],
  ['/tmp/npx', '-y', '@scope/server@1.2.3', '/srv'],
  ['npx -y @scope/server@1.2.3 /srv'],
  ['serve', ''],
  ['serve '],
  ['tool', '-a', '--flag'],
  ['tool', 'a', '--flags'],
]) {
  test(`refuses ${JSON.stringify(words)}`, () => assert.ok(refused(...words)));
}

test('takes no wildcard for the program itself', () => {
  assert.ok(refused('sh', 'x'));
  assert.ok(refused('*anything', 'x'));
});

test('allows nothing when nothing is listed', () => {
  assert.ok(commandRefusal({ words: ['serve'] }, { allowed: [], declaredNames: [] }));
  assert.ok(commandRefusal({ words: [] }, { allowed: [[]], declaredNames: [] }), 'no command at all');
});

test('lets no working directory be chosen', () => {
  assert.match(String(commandRefusal({ words: ['serve'], workingDir: '/' }, rules)), /working directory/);
});

test('lets only declared variables be set', () => {
  assert.is(commandRefusal({ words: ['serve'], env: { MEMORY_FILE: '/x' } }, rules), undefined);
  for (const name of ['OTHER', 'memory_file', 'constructor', '__proto__']) {
    const env = Object.fromEntries([[name, 'x']]);
    assert.match(String(commandRefusal({ words: ['serve'], env }, rules)), /does not declare/);
  }
});

for (const name of [
  ...['PATH', 'Path', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'DYLD_INSERT_LIBRARIES', 'NODE_OPTIONS'],
  ...['node_options', 'PYTHONPATH', 'PYTHONSTARTUP', 'BASH_ENV', 'ENV', 'PERL5OPT', 'RUBYOPT'],
]) {
  test(`never lets ${name} be set, even when it is declared`, () => {
    const declared = { ...rules, declaredNames: [name] };
    assert.match(
      String(commandRefusal({ words: ['serve'], env: { [name]: 'x' } }, declared)),
      /what code runs/,
    );
  });
}

test('does not repeat values', () => {
  const refusal = commandRefusal({ words: ['serve'], env: { TOKEN: 'secret' } }, rules);
  assert.not.match(String(refusal), /secret/);
});

test.run();
