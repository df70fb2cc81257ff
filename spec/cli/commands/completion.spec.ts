// The completion scripts, run by the shells that they are for.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../src/cli/commands/index.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, printed, runCommand } from './against-gateway.ts';

const test = suite('completion');
const folder = folderOfAll(test);
test.before(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    writeFileSync(folder(shell), `${await printed(runCommand(['completion', shell]))}\n`);
  }
});

/** What each shell runs: its script, and a completion of the words in `$@`, printed one per line. */
const HARNESS: Readonly<Record<string, (words: readonly string[]) => readonly string[]>> = {
  bash: (words) => [
    ...['--norc', '--noprofile', '-c'],
    `source "$0"; COMP_WORDS=(stagedoor "$@"); COMP_CWORD=$#; _stagedoor; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ...[folder('bash'), ...words],
  ],
  // Its line editor chooses the candidates that begin with the word.
  zsh: (words) => [
    ...['-f', '-c'],
    `compdef() {}; source "$0"; COMP_WORDS=(stagedoor "$@"); COMP_CWORD=$#;
     compgen -F _stagedoor -- | grep -- "^\${@[-1]}"`,
    ...[folder('zsh'), ...words],
  ],
  fish: (words) => [
    ...['--no-config', '-c'],
    // A candidate is followed by its description.
    `source ${folder('fish')}; complete -C "stagedoor ${words.join(' ')}" | string replace -r '\\t.*' ''`,
  ],
};

for (const [shell, harness] of Object.entries(HARNESS)) {
  const isThere = spawnSync(shell, ['--version']).status === 0;
  const complete = (...words: string[]): string[] => {
    // The exit code is not checked: it depends on the shell and on the candidates.
    const { stdout, stderr } = spawnSync(shell, harness(words), { encoding: 'utf8' });
    assert.is(stderr, '', words.join(' '));
    return stdout.split('\n').filter((line) => line !== '');
  };
  const inShell = test.needs(isThere, `no ${shell} is installed`);

  inShell(`${shell} completes groups and commands`, () => {
    assert.equal(complete('gat'), ['gateway']);
    assert.equal(complete('do'), ['doctor']);
    assert.equal(complete('gateway', 'st').sort(), ['start', 'stats', 'status', 'stop']);
    const names = COMMANDS.flatMap(({ name, alias = name }) => [name, alias]);
    const found = complete('gateway', '').sort();
    const words = names.flatMap((name) => (name.startsWith('gateway ') ? name.slice('gateway '.length) : []));
    assert.equal(found, [...new Set(words)].sort());
    assert.equal(complete('grant', '').sort(), ['list', 'revoke']);
    assert.equal(complete('grant', 'list', '--js'), ['--json']);
    assert.equal(complete('nothing', 'st'), []);
  });

  inShell(`${shell} completes the options of a command`, () => {
    assert.equal(complete('gateway', 'stats', '--wa'), ['--watch']);
    assert.equal(complete('instance', 'register', 'search', '--en').sort(), ['--endpoint', '--env']);
    assert.equal(complete('db', 'export', '--wi'), ['--with-secrets']);
    assert.equal([...complete('events', '--fo'), ...complete('events', '-f')], ['--follow', '-f']);
    assert.equal(complete('doctor', '--templ'), ['--templates-dir']);
    assert.equal(complete('gateway', 'stats', '--nothing'), []);
    assert.equal(complete('template', 'show', 'json'), []);
  });
}

test('refuses an unknown shell and names the supported ones', async () => {
  const line = 'stagedoor: unknown shell "tcsh"; shells are bash, zsh, fish';
  assert.is(await complaint(runCommand(['completion', 'tcsh']), 2), line);
});

test.run();
