import * as assert from 'uvu/assert';
import {
  emailOf,
  keyNameOf,
  permissionsOf,
  readExpiry,
  roleOf,
  templatesOf,
  usernameOf,
} from '../../../src/cli/accounts/account-options.ts';
import { readPassword } from '../../../src/cli/accounts/password-option.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

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

const expiry = suite('expiry');
const nowMs = Date.parse('2027-01-01T00:00:00Z');

expiry('is a span from now or a time, in UTC', () => {
  const read = [
    '12h',
    '30d',
    '8w',
    '2027-01-31',
    '2028-02-29',
    '2027-01-31T12:00:00Z',
    '2027-01-31T12:00:00+02:00',
    '2027-01-31T12:00Z',
  ];
  assert.equal(
    read.map((written) => readExpiry(written, nowMs)),
    [
      '2027-01-01T12:00:00.000Z',
      '2027-01-31T00:00:00.000Z',
      '2027-02-26T00:00:00.000Z',
      '2027-01-31T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
      '2027-01-31T12:00:00.000Z',
      '2027-01-31T10:00:00.000Z',
      '2027-01-31T12:00:00.000Z',
    ],
  );
});

expiry('refuses what could mean several times, or none', () => {
  for (const written of [
    '',
    'x',
    '30',
    '30m',
    '2027-1-31',
    '2027-01-31Z',
    '2027-01-31T12:00:00',
    '2027-02-29',
    '2027-02-30T00:00:00Z',
    '2027-13-01',
    '2027-01-00',
    '1d2h',
    '-1d',
    '2027-13-01T00:00:00Z',
  ]) {
    assert.throws(() => readExpiry(written, nowMs), refusal(/^--expires takes a time such as/), written);
  }
});

expiry('refuses the past', () => {
  for (const written of ['0h', '2026-12-31', '2027-01-01', '2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z']) {
    assert.throws(() => readExpiry(written, nowMs), refusal(/^--expires must be in the future/), written);
  }
});

expiry.run();

function refusal(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof UsageError && message.test(error.message);
}

const passwords = suite('password option');

passwords('asks once for one that exists and twice for a new one', async () => {
  const login = await read({ answers: ['short'] }, { isNew: false });
  assert.equal([login.password, login.questions], ['short', ['Password of ada: ']]);
  const fresh = await read({ answers: ['long enough', 'long enough'] }, { isNew: true });
  assert.equal(
    [fresh.password, fresh.questions],
    ['long enough', ['Password of ada: ', 'Repeat the password: ']],
  );
});

passwords('reads the line of standard input', async () => {
  const { password, questions, complaints } = await read(
    { line: ' of spaces ' },
    { written: '-', isNew: true },
  );
  assert.equal([password, questions, complaints], [' of spaces ', [], []]);
});

passwords('takes a value of the command line and warns, without repeating it', async () => {
  const { password, complaints } = await read({}, { written: 'planted-password', isNew: true });
  assert.is(password, 'planted-password');
  assert.match(complaints.join(), /^warning: every user of this machine can read a command line/);
  assert.not.match(complaints.join(), 'planted');
});

passwords('says how to give it where nobody can be asked', async () => {
  await fails(read({}, { isNew: false }), UsageError, /^there is no terminal to ask .* --password - /);
});

passwords('fails when it is cancelled or typed differently', async () => {
  await fails(read({ answers: [] }, { isNew: false }), CommandFailure, /^cancelled$/);
  await fails(read({ answers: ['long enough'] }, { isNew: true }), CommandFailure, /^cancelled$/);
  const differing = { answers: ['long enough', 'long enougH'] };
  await fails(read(differing, { isNew: true }), CommandFailure, /^the two passwords differ/);
});

const unusable: readonly (readonly [string, RegExp])[] = [
  ['seven77', /at least 8 characters$/],
  ['🔑'.repeat(7), /at least 8 characters$/],
  ['x'.repeat(73), /at most 72 bytes/],
  ['ü'.repeat(37), /at most 72 bytes/],
  ['nul\0nul\0nul', /no NUL characters/],
  ['half \ud800 a pair', /halves of surrogate pairs/],
];
for (const [password, message] of unusable) {
  passwords(
    `refuses a new password of ${JSON.stringify(password).slice(0, 20)}, before it is typed again`,
    async () => {
      await fails(read({ line: password }, { written: '-', isNew: true }), UsageError, message);
      const terminal = recordingTerminal({ answers: [password] });
      const question = { question: 'Password', isNew: true };
      await fails(readPassword(input(undefined), terminal, question), UsageError, message);
      assert.equal(terminal.questions, ['Password: ']);
    },
  );
}

passwords('takes 8 characters and 72 bytes', async () => {
  for (const line of ['🔑'.repeat(8), 'x'.repeat(72), 'ü'.repeat(36)])
    assert.is((await read({ line }, { written: '-', isNew: true })).password, line);
});

passwords('refuses an empty one and input that holds none', async () => {
  await fails(read({ line: '' }, { written: '-', isNew: false }), UsageError, /^the password is empty$/);
  await fails(read({ answers: [''] }, { isNew: false }), UsageError, /^the password is empty$/);
  await fails(read({}, { written: '-', isNew: false }), UsageError, /^standard input must hold the password/);
});

passwords.run();

async function read(options: RecordingOptions, { written, isNew }: { written?: string; isNew: boolean }) {
  const terminal = recordingTerminal(options);
  const password = await readPassword(input(written), terminal, { question: 'Password of ada', isNew });
  return { password, questions: terminal.questions, complaints: terminal.complaints };
}

function input(written: string | undefined): CommandInput {
  return new CommandInput([], new Map(written === undefined ? [] : [['password', written]]));
}

async function fails(
  work: Promise<unknown>,
  kind: new (text: string) => Error,
  message: RegExp,
): Promise<void> {
  const error = await work.catch((reason: unknown) => reason);
  assert.instance(error, kind);
  assert.match((error as Error).message, message);
}
