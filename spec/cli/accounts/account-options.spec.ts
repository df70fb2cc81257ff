// Invalid arguments, options and passwords of accounts are refused before a question is asked or a request is sent.

import * as assert from 'uvu/assert';
import {
  keyNameOf,
  permissionsOf,
  readExpiry,
  readPassword,
  usernameOf,
} from '../../../src/cli/accounts/account-options.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

const test = suite('account options');
const nowMs = Date.parse('2027-01-01T00:00:00Z');

const words = (...positionals: string[]) => new CommandInput(positionals, new Map());
const given = (options: Record<string, string>) => new CommandInput([], new Map(Object.entries(options)));
function refuses(work: () => unknown, message: RegExp, what?: string): void {
  assert.throws(work, (error: unknown) => error instanceof UsageError && message.test(error.message), what);
}

test('accept exactly the names that the gateway accepts', () => {
  for (const name of ['a', 'Ada.Lovelace', '7', 'ada@example.com', 'x'.repeat(64)])
    assert.is(usernameOf(words(name)), name);
  for (const name of ['', ' ada', '-ada', 'ädä', 'x'.repeat(65), 'a\n'])
    refuses(() => usernameOf(words(name)), /^a user name is letters, digits/, name);
  assert.is(keyNameOf(words('build server, 🔑')), 'build server, 🔑');
  for (const name of [
    '',
    'x'.repeat(129),
    'a\0b',
    'a\nb',
    'half \ud800',
    'a\u001b[31m',
    'a\u202egpj',
    '\u200b',
  ])
    refuses(() => keyNameOf(words(name)), /^the name of a key has 1 to 128 characters$/);
});

test('refuse permissions that do not exist, are empty, or exceed the role', () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ permissions: 'tools:cal' }, /^unknown permission "tools:cal"; did you mean "tools:call"\?$/],
    [{ permissions: 'all' }, /^unknown permission "all"; permissions are gateway:read, .*tools:call.*admin/],
    [{ permissions: '' }, /^--permissions takes words separated by commas/],
    [{ permissions: 'admin,' }, /^--permissions takes words separated by commas/],
    [{ role: 'user', permissions: 'tools:call,admin' }, /^the role user does not have .* "admin"$/],
  ];
  for (const [options, message] of cases) refuses(() => permissionsOf(given(options)), message);
});

test('read an expiry as a duration from now or a time in UTC', () => {
  const cases = {
    '12h': '2027-01-01T12:00:00.000Z',
    '30d': '2027-01-31T00:00:00.000Z',
    '8w': '2027-02-26T00:00:00.000Z',
    '2028-02-29': '2028-02-29T00:00:00.000Z',
    '2027-01-31T12:00:00+02:00': '2027-01-31T10:00:00.000Z',
    '2027-01-31T12:00Z': '2027-01-31T12:00:00.000Z',
  };
  for (const [written, expected] of Object.entries(cases)) assert.is(readExpiry(written, nowMs), expected);
});

test('refuse an expiry that is ambiguous, invalid or past', () => {
  const unclear = ['', 'x', '30', '30m', '1d2h', '-1d', '2027-1-31', '2027-01-31Z', '2027-01-31T12:00:00'];
  const impossible = [
    '2027-02-29',
    '2027-02-30T00:00:00Z',
    '2027-13-01',
    '2027-01-00',
    '2027-13-01T00:00:00Z',
  ];
  for (const written of [...unclear, ...impossible])
    refuses(() => readExpiry(written, nowMs), /^--expires takes a time such as/, written);
  for (const written of ['0h', '2026-12-31', '2027-01-01', '2027-01-01T00:00:00Z'])
    refuses(() => readExpiry(written, nowMs), /^--expires must be in the future/, written);
});

test('ask for an existing password once, and for a new one twice', async () => {
  const login = await read({ answers: ['short'] }, { isNew: false });
  assert.equal([login.password, login.questions], ['short', ['Password of ada: ']]);
  const fresh = await read({ answers: ['long enough', 'long enough'] }, { isNew: true });
  assert.equal(fresh.questions, ['Password of ada: ', 'Repeat the password: ']);
});

test('take a password of 8 characters to 72 bytes from standard input, spaces included', async () => {
  for (const line of [' of spaces ', '🔑'.repeat(8), 'ü'.repeat(36)]) {
    const { password, questions, complaints } = await read({ line }, { written: '-', isNew: true });
    assert.equal([password, questions, complaints], [line, [], []]);
  }
});

test('refuse an unusable new password, before it is typed again', async () => {
  const unusable: [string, RegExp][] = [
    ['🔑'.repeat(7), /at least 8 characters$/],
    ['ü'.repeat(37), /at most 72 bytes/],
    ['nul\0nul\0nul', /no NUL characters/],
    ['half \ud800 a pair', /halves of surrogate pairs/],
  ];
  for (const [password, message] of unusable) {
    await rejects(read({ line: password }, { written: '-', isNew: true }), UsageError, message);
    await rejects(read({ answers: [password] }, { isNew: true }), UsageError, message);
  }
});

test('refuse a missing, empty, cancelled or differently repeated password', async () => {
  const cases: [
    RecordingOptions,
    { written?: string; isNew: boolean },
    new (text: string) => Error,
    RegExp,
  ][] = [
    [{}, { isNew: false }, UsageError, /^there is no terminal to ask .* --password - /],
    [{ answers: [] }, { isNew: false }, CommandFailure, /^cancelled$/],
    [{ answers: ['long enough'] }, { isNew: true }, CommandFailure, /^cancelled$/],
    [
      { answers: ['long enough', 'long enougH'] },
      { isNew: true },
      CommandFailure,
      /^the two passwords differ/,
    ],
    [{ line: '' }, { written: '-', isNew: false }, UsageError, /^the password is empty$/],
    [{ answers: [''] }, { isNew: false }, UsageError, /^the password is empty$/],
    [{}, { written: '-', isNew: false }, UsageError, /^standard input must hold the password/],
  ];
  for (const [options, choice, kind, message] of cases) await rejects(read(options, choice), kind, message);
});

test.run();

async function read(options: RecordingOptions, { written, isNew }: { written?: string; isNew: boolean }) {
  const terminal = recordingTerminal(options);
  const input = given(written === undefined ? {} : { password: written });
  const password = await readPassword(input, terminal, { question: 'Password of ada', isNew });
  return { password, questions: terminal.questions, complaints: terminal.complaints };
}
