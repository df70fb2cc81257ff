// The text of `--help`, for the program, a group and a command. Made from the table, so that it cannot be out of date.
// cac's own help is not used: it knows no groups and writes to the console by itself.

import { ownCommand } from '../domain/own-command.ts';
import type { CommandDefinition } from './command.ts';

/** Help for the program (`group` undefined) or for the commands of one group. */
export function overview(commands: readonly CommandDefinition[], group?: string): string {
  const shown = commands.filter(({ name }) => group === undefined || name.startsWith(`${group} `));
  const program = group === undefined ? 'stagedoor' : `stagedoor ${group}`;
  const rows = shown.map((command) => [usage(command), command.summary] as const);
  return [
    'One HTTP entrance to many MCP servers.',
    section('Usage', [`${program} <command> [options]`]),
    section('Commands', columns(rows)),
    section('Options', columns(group === undefined ? [help, version] : [help])),
    ...(shown.some(talksToGateway) ? [section('Environment', columns([url, ...credentials]))] : []),
    `Every command explains itself: ${ownCommand(`${shown[0]?.name ?? ''} --help`)}`,
  ].join('\n\n');
}

/** Help for one command. */
export function commandHelp(command: CommandDefinition): string {
  const rows = command.options.map(
    ({ flags, short, description }) =>
      [short === undefined ? flags : `-${short}, ${flags}`, description] as const,
  );
  const examples = (command.examples ?? []).map((example) => ownCommand(example));
  return [
    `${command.summary}.`,
    section('Usage', [`stagedoor ${usage(command)}${rows.length > 0 ? ' [options]' : ''}`]),
    section('Options', columns([...rows, help])),
    ...(talksToGateway(command) ? [section('Environment', columns(credentials))] : []),
    ...(examples.length > 0 ? [section('Examples', examples)] : []),
  ].join('\n\n');
}

function talksToGateway({ options }: CommandDefinition): boolean {
  return options.some(({ flags }) => flags.startsWith('--url '));
}

const url = ['STAGEDOOR_URL', 'the gateway to talk to, where no --url says so'] as const;
const credentials = [
  ['STAGEDOOR_API_KEY', 'the API key that is sent to the gateway'],
  ['STAGEDOOR_TOKEN', 'a token instead; without either, what "gateway login" has kept is sent'],
] as const;
const help = ['-h, --help', 'show this'] as const;
const version = ['-v, --version', 'show the version'] as const;

function usage({ name, positionals }: CommandDefinition): string {
  return `${name} ${positionals}`.trim();
}

function section(title: string, lines: readonly string[]): string {
  return [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** Two columns; the right one is wrapped, so that lines stay readable. */
function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.flatMap(([left, right]) =>
    wrapped(right, LINE_CHARACTERS - width).map((line, index) =>
      `${(index === 0 ? left : '').padEnd(width)}  ${line}`.trimEnd(),
    ),
  );
}

const LINE_CHARACTERS = 110;

function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
