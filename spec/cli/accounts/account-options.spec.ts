// Invalid options and passwords of accounts are refused before a request is sent.

import * as assert from 'uvu/assert';
import { keyRightsOf, LIFETIME_MS, readPassword } from '../../../src/cli/accounts/account-options.ts';
import { CommandInput, timeOf } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

const test = suite('account options');
const nowMs = Date.parse('2027-01-01T00:00:00Z');

const expiryOf = (written: string) => timeOf('expires', written, LIFETIME_MS, nowMs);
const given = (options: Record<string, string>) => new CommandInput([], new Map(Object.entries(options)));
function refuses(work: () => unknown, message: RegExp, what?: string): void {
  assert.throws(work, (error: unknown) => error instanceof UsageError && message.test(error.message), what);
}

test('refuse permissions and roles that do not exist, and permissions beyond the role', () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ permissions: 'tools:cal' }, /^--permissions must be gateway:read or .* or admin, not "tools:cal"$/],
    [{ permissions: 'admin,' }, /^--permissions must be .*, not ""$/],
    [{ role: 'Root' }, /^--role must be admin, user or the name of a role of the settings, not "Root"$/],
    [{ role: 'user', permissions: 'admin' }, /^--permissions must be gateway:read or tools:call, not/],
  ];
  const ofUser = { role: 'user', permissions: ['tools:call'] };
  assert.equal(keyRightsOf(given({ role: 'user', permissions: 'tools:call' })), ofUser);
  // Its permissions are known to the gateway.
  assert.equal(keyRightsOf(given({ role: 'support' })), { role: 'support', permissions: undefined });
  assert.equal(keyRightsOf(given({})).permissions, ['gateway:read', 'tools:call']);
  for (const [options, message] of cases) refuses(() => keyRightsOf(given(options)), message);
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
  for (const [written, expected] of Object.entries(cases)) assert.is(expiryOf(written), expected);
});

test('refuse an expiry that is ambiguous or invalid', () => {
  const unclear = ['', 'x', '30', '30m', '1d2h', '-1d', '2027-1-31', '2027-01-31Z', '2027-01-31T12:00:00'];
  for (const written of [...unclear, '2027-02-29', '2027-13-01', '2027-02-30T00:00:00Z'])
    refuses(() => expiryOf(written), /^--expires takes a time such as/, written);
});

test('ask for an existing password once, and for a new one twice', async () => {
  const login = await read({ answers: ['short'] }, { isNew: false });
  assert.equal([login.password, login.questions], ['short', ['Password of ada: ']]);
  const fresh = await read({ answers: ['long enough', 'long enough'] }, { isNew: true });
  assert.equal(fresh.questions, ['Password of ada: ', 'Repeat the password: ']);
});

test('take a password from standard input as it is, spaces included', async () => {
  const { password, questions, complaints } = await read(
    { line: ' of spaces ' },
    { written: '-', isNew: true },
  );
  assert.equal([password, questions, complaints], [' of spaces ', [], []]);
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
