import * as assert from 'uvu/assert';
import { readPassword } from '../../../src/cli/accounts/password-option.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure, UsageError } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

const test = suite('password option');

test('asks once for one that exists and twice for a new one', async () => {
  const login = await read({ answers: ['short'] }, { isNew: false });
  assert.equal([login.password, login.questions], ['short', ['Password of ada: ']]);
  const fresh = await read({ answers: ['long enough', 'long enough'] }, { isNew: true });
  assert.equal(
    [fresh.password, fresh.questions],
    ['long enough', ['Password of ada: ', 'Repeat the password: ']],
  );
});

test('reads the line of standard input', async () => {
  const { password, questions, complaints } = await read(
    { line: ' of spaces ' },
    { written: '-', isNew: true },
  );
  assert.equal([password, questions, complaints], [' of spaces ', [], []]);
});

test('takes a value of the command line and warns, without repeating it', async () => {
  const { password, complaints } = await read({}, { written: 'planted-password', isNew: true });
  assert.is(password, 'planted-password');
  assert.match(complaints.join(), /^warning: every user of this machine can read a command line/);
  assert.not.match(complaints.join(), 'planted');
});

test('says how to give it where nobody can be asked', async () => {
  await fails(read({}, { isNew: false }), UsageError, /^there is no terminal to ask .* --password - /);
});

test('fails when it is cancelled or typed differently', async () => {
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
  test(`refuses a new password of ${JSON.stringify(password).slice(0, 20)}, before it is typed again`, async () => {
    await fails(read({ line: password }, { written: '-', isNew: true }), UsageError, message);
    const terminal = recordingTerminal({ answers: [password] });
    const question = { question: 'Password', isNew: true };
    await fails(readPassword(input(undefined), terminal, question), UsageError, message);
    assert.equal(terminal.questions, ['Password: ']);
  });
}

test('takes 8 characters and 72 bytes', async () => {
  for (const line of ['🔑'.repeat(8), 'x'.repeat(72), 'ü'.repeat(36)])
    assert.is((await read({ line }, { written: '-', isNew: true })).password, line);
});

test('refuses an empty one and input that holds none', async () => {
  await fails(read({ line: '' }, { written: '-', isNew: false }), UsageError, /^the password is empty$/);
  await fails(read({ answers: [''] }, { isNew: false }), UsageError, /^the password is empty$/);
  await fails(read({}, { written: '-', isNew: false }), UsageError, /^standard input must hold the password/);
});

test.run();

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
