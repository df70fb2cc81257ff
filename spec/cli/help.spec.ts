// Help for people: what it lists, and how it fits a terminal. Its examples: spec/system/clients/help-examples.spec.ts.

import * as assert from 'uvu/assert';
import { optionsOf } from '../../src/cli/command.ts';
import { config } from '../../src/cli/commands/config.ts';
import { COMMAND_GROUPS, COMMANDS } from '../../src/cli/commands/index.ts';
import { commandHelp, groupHelp, overview } from '../../src/cli/help.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('help');
const top = overview(COMMANDS, COMMAND_GROUPS);
const groupText = (group: string) => groupHelp(COMMANDS, group, COMMAND_GROUPS[group] ?? '');

test('shows usage, options and examples of each command', () => {
  for (const command of COMMANDS) {
    const text = commandHelp(command);
    assert.match(text, `stagedoor ${command.name}`);
    const [noun = '', verb] = command.name.split(' ');
    if (verb === undefined) assert.match(top, `  ${noun}`);
    else assert.match(groupText(noun), `  ${command.name}`);
    for (const { flags, short, group } of optionsOf(command)) {
      if (command.settingsOf !== undefined && group !== undefined) continue;
      const shown = short === undefined ? flags : `-${short}, ${flags}`;
      assert.ok(text.includes(`  ${shown} `), `${command.name} ${flags}`);
    }
    assert.ok((command.examples ?? []).length > 0, `${command.name} has an example`);
    for (const example of command.examples ?? []) assert.match(text, `  npx stagedoor ${example}`);
  }
});

test('fits the terminal, and wraps nothing in a pipe', () => {
  for (const columns of [72, 80, 132]) {
    for (const command of COMMANDS) {
      const [options = ''] = commandHelp(command, columns).split('\nExamples:');
      const long = options.split('\n').filter((line) => line.length > columns);
      assert.equal(long, [], `${command.name} at ${columns}`);
    }
    const lines = overview(COMMANDS, COMMAND_GROUPS, columns).split('\n');
    assert.ok(lines.every((line) => line.length <= columns));
  }
  for (const command of COMMANDS) {
    const text = commandHelp(command);
    for (const { description, group } of optionsOf(command))
      if (command.settingsOf === undefined || group === undefined)
        assert.ok(text.includes(`  ${description}\n`), command.name);
  }
});

test('offers every setting that has a flag, with its unit, and both forms of a switch', () => {
  const flags = optionsOf(config).map((option) => option.flags);
  const names = flags.map((each) => each.split(' ')[0]);
  for (const { flag } of ALL_SETTINGS) assert.ok(flag === undefined || names.includes(`--${flag}`), flag);
  for (const each of [
    '--port <value>',
    '--health-interval <seconds>',
    '--config <file>',
    '--auth',
    '--no-auth',
  ])
    assert.ok(flags.includes(each), each);
  assert.not.ok(flags.some((each) => each.startsWith('--secret-key')));
});

test('groups the options of a start by the sections of the settings', () => {
  const start = COMMANDS.find(({ name }) => name === 'gateway start');
  assert.ok(start);
  const text = commandHelp(start);
  const headings = [...text.matchAll(/^(\w[\w ]*):$/gm)].map(([, heading]) => heading);
  assert.equal(headings, [
    ...['Usage', 'Options', 'Service', 'Balancing and sessions', 'HTTP', 'Accounts and limits'],
    ...['Storage and programs', 'Examples'],
  ]);
  assert.match(text, /^Options:\n {2}--demo .*\n {2}--background .*\n {2}-q, --quiet .*\n {2}-h, --help/m);
  assert.match(text, /^Accounts and limits:\n {2}--auth /m);
});

test('names the command that lists the settings, where others take them, too', () => {
  for (const { name, settingsOf } of COMMANDS.filter(({ options }) => '--port <value>' in options))
    assert.is(settingsOf, name === 'gateway start' ? undefined : 'gateway start', name);
  const text = commandHelp(config);
  assert.match(text, /^Settings:\n {2}as for npx stagedoor gateway start, whose --help lists them$/m);
  assert.match(text, /^ {2}--json /m);
  assert.not.match(text, '--port');
});

test('shows each noun with its verbs, and each group with its commands', () => {
  const headings = (text: string) => [...text.matchAll(/^(\w[\w ,]*):$/gm)].map(([, heading]) => heading);
  assert.equal(headings(top), [
    ...['Usage', 'Commands', 'More commands', 'First steps', 'Options', 'Environment'],
  ]);
  assert.match(top, /^ {2}node +[\w ]+: list, drain, resume$/m);
  const views = groupText('view');
  assert.equal(headings(views), ['Usage', 'Commands', 'Options', 'Environment']);
  assert.is(views.split('\n')[0], `${COMMAND_GROUPS.view}.`);
  const groups = COMMANDS.map(({ name }) => name.replace(/ ?[^ ]+$/, '')).filter((name) => name !== '');
  assert.equal(Object.keys(COMMAND_GROUPS).sort(), [...new Set(groups)].sort());
});

test('lists the environment variables for a gateway only where a command uses a gateway', () => {
  assert.match(top, /^ {2}stagedoor <command>.*^ {2}-v, --version .*^ {2}STAGEDOOR_URL /ms);
  const group = groupText('gateway');
  assert.match(group, /^ {2}stagedoor gateway <command>.*: npx stagedoor gateway start --help$/ms);
  assert.not.match(group, /^ {2}(-v, --version|config) /ms);
  const name = '  STAGEDOOR_API_KEY ';
  for (const text of [top, group]) assert.match(text, name);
  assert.not.match(groupText('db'), name);
  for (const command of COMMANDS) {
    const talks = optionsOf(command).some(({ flags }) => flags === '--url <url>');
    assert.is(commandHelp(command).includes(name), talks, command.name);
  }
});

test.run();
