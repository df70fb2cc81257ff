import * as assert from 'uvu/assert';
import {
  emailOf,
  keyNameOf,
  permissionsOf,
  roleOf,
  templatesOf,
  usernameOf,
} from '../../../src/cli/accounts/account-options.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { UsageError } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('account options');

test('take names that the gateway takes', () => {
  for (const name of ['a', 'Ada.Lovelace', '7', 'ada@example.com', 'x'.repeat(64)])
    assert.is(usernameOf(words(name)), name);
  for (const name of ['', ' ada', '-ada', 'a b', 'ädä', 'x'.repeat(65), 'a\n'])
    refuses(() => usernameOf(words(name)), /^a user name is letters, digits/);
  assert.is(keyNameOf(words('build server, 🔑')), 'build server, 🔑');
  for (const name of ['', 'x'.repeat(129), 'a\0b', 'half \ud800'])
    refuses(() => keyNameOf(words(name)), /^the name of a key has 1 to 128 characters$/);
});

test('make an address of the user name', () => {
  assert.is(emailOf(given({}), 'ada'), 'ada@localhost');
  assert.is(emailOf(given({}), 'ada@example.com'), 'ada@example.com');
  assert.is(emailOf(given({ email: 'x@y.example' }), 'ada'), 'x@y.example');
  refuses(() => emailOf(given({ email: 'nowhere' }), 'ada'), /^--email must be an address/);
});

test('know two roles', () => {
  assert.equal(
    [roleOf(given({ role: 'admin' })), roleOf(given({ role: 'user' })), roleOf(given({}))],
    ['admin', 'user', undefined],
  );
  refuses(() => roleOf(given({ role: 'root' })), /^--role must be admin or user, not "root"$/);
});

test('take permissions from the list, else from the role', () => {
  const all = ['gateway:read', 'gateway:write', 'tools:call', 'admin'];
  assert.equal(permissionsOf(given({})), ['gateway:read', 'tools:call']);
  assert.equal(permissionsOf(given({ role: 'admin' })), all);
  assert.equal(permissionsOf(given({ permissions: 'tools:call, gateway:write,tools:call' })), [
    'tools:call',
    'gateway:write',
  ]);
  assert.equal(permissionsOf(given({ role: 'user', permissions: 'tools:call' })), ['tools:call']);
});

test('refuse permissions that do not exist, are none, or go beyond the role', () => {
  const misspelt = /^unknown permission "tools:cal"; did you mean "tools:call"\?$/;
  refuses(() => permissionsOf(given({ permissions: 'tools:cal' })), misspelt);
  const unlike = /^unknown permission "all"; permissions are gateway:read, .*tools:call.*admin/;
  refuses(() => permissionsOf(given({ permissions: 'all' })), unlike);
  refuses(() => permissionsOf(given({ permissions: '' })), /^--permissions takes words separated by commas/);
  refuses(
    () => permissionsOf(given({ permissions: 'admin,' })),
    /^--permissions takes words separated by commas/,
  );
  const beyond = /^the role user does not have the permission "admin"$/;
  refuses(() => permissionsOf(given({ role: 'user', permissions: 'tools:call,admin' })), beyond);
});

test('take names of templates', () => {
  assert.equal(templatesOf(given({})), undefined);
  assert.equal(templatesOf(given({ templates: 'files, search,files' })), ['files', 'search']);
  for (const templates of ['', 'Files', 'a/b', 'a,,b']) {
    refuses(() => templatesOf(given({ templates })), /^--templates takes/);
  }
});

test.run();

function words(...positionals: string[]): CommandInput {
  return new CommandInput(positionals, new Map());
}

function given(options: Record<string, string>): CommandInput {
  return new CommandInput([], new Map(Object.entries(options)));
}

function refuses(work: () => unknown, message: RegExp): void {
  assert.throws(work, (error: unknown) => error instanceof UsageError && message.test(error.message));
}
