// The whole command line, in this process: exit codes, standard output and standard error.

import * as assert from 'uvu/assert';
import { Cancelled } from '../../src/cli/failures.ts';
import { main } from '../../src/cli/main.ts';
import { VERSION } from '../../src/domain/version.ts';
import { suite } from '../helpers/suite.ts';
import { complaint, printed, runCommand } from './commands/against-gateway.ts';
import { recordingTerminal } from './recording-terminal.ts';

const test = suite('main');

test('prints the version', async () => {
  assert.is(await printed(runCommand(['--version'])), VERSION);
});

test('prints help on request, with exit code 0', async () => {
  for (const words of [['--help'], ['gateway', '--help'], ['instance', 'list', '-h'], ['config', '--help']])
    assert.match(await printed(runCommand(words)), 'Usage:');
});

test('prints help to standard error when no command is named, with exit code 2', async () => {
  for (const words of [[], ['gateway']]) assert.match(await complaint(runCommand(words), 2), 'Usage:');
});

test('suppresses warnings, but not errors, with --quiet', async () => {
  const words = ['config', '--port', '9000'];
  const env = { GATEWAY_PROT: '1' };
  const loud = await runCommand(words, env);
  assert.match(loud.err, /^warning: /);
  assert.equal(await runCommand([...words, '--quiet'], env), { ...loud, err: '' });
  assert.equal(await runCommand([...words, '-q'], env), { ...loud, err: '' });
  const failed = await complaint(runCommand(['instance', 'list', '-q', '--url', 'http://127.0.0.1:2']));
  assert.match(failed, /^stagedoor: nothing listens/);
});

test('exits with 130 after Ctrl-C at a question', async () => {
  const terminal = recordingTerminal({ answers: [] });
  const asked = { ...terminal, askHidden: () => Promise.reject(new Cancelled()) };
  const words = ['gateway', 'login', 'admin', '--url', 'http://127.0.0.1:2'];
  assert.equal([await main(words, asked), terminal.complaints], [130, ['stagedoor: cancelled']]);
});

test('prints the stack of an unexpected error, with exit code 1', async () => {
  const terminal = { ...recordingTerminal(), print: () => assert.unreachable('a defect') };
  const complaints: string[] = [];
  const code = await main(['--version'], { ...terminal, complain: (line) => void complaints.push(line) });
  assert.is(code, 1);
  assert.match(String(complaints[0]), /^stagedoor: Assertion: [^\n]+\n {4}at /);
});

test.run();
