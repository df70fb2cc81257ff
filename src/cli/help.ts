// The text of `--help`, made from the command table. The help of cac has no groups and writes to the console by itself.

import { stripVTControlCharacters } from 'node:util';
import { ownCommand } from '../domain/version.ts';
import { type Command, optionsOf } from './command.ts';

type HelpRow = readonly [name: string, text: string];

/** Help for the program: its nouns with their verbs, and the commands of one word. `columns`: those of the terminal, if any. */
export function overview(
  commands: readonly Command[],
  groups: Readonly<Record<string, string>>,
  columns?: number,
): string {
  const nouns = Object.entries(groups).map(([noun, about]): HelpRow => {
    const verbs = ofGroup(commands, noun).map(({ name }) => name.slice(noun.length + 1));
    return [noun, `${about}: ${verbs.join(', ')}`];
  });
  const single = commands.filter(({ name }) => !name.includes(' '));
  return [
    'One HTTP entrance in front of many MCP servers.',
    section('Usage', ['stagedoor <command> [options]']),
    rowSection('Commands', nouns, columns),
    rowSection('More commands', single.map(overviewRow), columns),
    section(
      'First steps',
      FIRST_STEPS.map((each) => ownCommand(each)),
    ),
    rowSection('Options', [HELP_ROW, VERSION_ROW], columns),
    rowSection('Environment', [URL_ROW, CREDENTIALS_ROW], columns),
    `Help for a command: ${ownCommand('instance list --help')}`,
  ].join('\n\n');
}

const FIRST_STEPS = ['gateway start --demo', 'instance list', 'connect everything'];

/** Help for the commands of a group. */
export function groupHelp(
  commands: readonly Command[],
  group: string,
  about: string,
  columns?: number,
): string {
  const shown = ofGroup(commands, group);
  const others = commands.flatMap((command): HelpRow[] =>
    command.alias?.startsWith(`${group} `)
      ? [[usage({ ...command, name: command.alias }), `The same as "${command.name}"`]]
      : [],
  );
  return [
    `${about}.`,
    section('Usage', [`stagedoor ${group} <command> [options]`]),
    rowSection('Commands', [...shown.map(overviewRow), ...others], columns),
    rowSection('Options', [HELP_ROW], columns),
    ...(shown.some(talksToGateway) ? [rowSection('Environment', [URL_ROW, CREDENTIALS_ROW], columns)] : []),
    `Help for a command: ${ownCommand(`${shown[0]?.name ?? ''} --help`)}`,
  ].join('\n\n');
}

function ofGroup(commands: readonly Command[], group: string): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${group} `));
}

/** The row of a command, without the part of its summary after a semicolon: only the help of the command itself shows that. */
function overviewRow(command: Command): HelpRow {
  return [usage(command), command.summary.replace(/;.*$/s, '')];
}

export function commandHelp(command: Command, columns?: number): string {
  const { summary, examples = [], settingsOf } = command;
  // Only settings have a group.
  const options = optionsOf(command).filter(({ group }) => settingsOf === undefined || group === undefined);
  // The common options come first, even if the command has no other options.
  const titles = new Set(['Options', ...options.map(({ group = 'Options' }) => group)]);
  const exampleLines = examples.map((each) => ownCommand(each));
  const rowsOf = (title: string): readonly HelpRow[] => [
    ...options
      .filter(({ group = 'Options' }) => group === title)
      .map(({ flags, short, description }): HelpRow => [short ? `-${short}, ${flags}` : flags, description]),
    ...(title === 'Options' ? [HELP_ROW] : []),
  ];
  return [
    wrapLines(`${summary}.`, columns ?? Number.POSITIVE_INFINITY).join('\n'),
    section('Usage', usages(command)),
    ...[...titles].map((title) => rowSection(title, rowsOf(title), columns)),
    ...(settingsOf === undefined
      ? []
      : [section('Settings', [`as for ${ownCommand(settingsOf)}, whose --help lists them`])]),
    ...(talksToGateway(command) ? [rowSection('Environment', [CREDENTIALS_ROW], columns)] : []),
    ...(exampleLines.length > 0 ? [section('Examples', exampleLines)] : []),
  ].join('\n\n');
}

function talksToGateway({ options }: Command): boolean {
  return '--url <url>' in options;
}

const URL_ROW: HelpRow = ['STAGEDOOR_URL', 'URL of the gateway, unless --url is given'];
const CREDENTIALS_ROW: HelpRow = [
  'STAGEDOOR_API_KEY',
  'API key for the gateway; default the token that "gateway login" has stored',
];
const HELP_ROW: HelpRow = ['-h, --help', 'Show this help'];
const VERSION_ROW: HelpRow = ['-v, --version', 'Show the version'];

function usage({ name, positionals = '' }: Pick<Command, 'name' | 'positionals'>): string {
  return `${name} ${positionals}`.trim();
}

/** The line of each name. */
export function usages(command: Command): readonly string[] {
  const { name, alias = name } = command;
  return [...new Set([name, alias])].map(
    (each) => `stagedoor ${usage({ ...command, name: each })} [options]`,
  );
}

function section(title: string, lines: readonly string[]): string {
  return [`${title}:`, ...lines.map((line) => `${INDENT}${line}`)].join('\n');
}

function rowSection(title: string, rows: readonly HelpRow[], columns: number | undefined): string {
  return section(title, rowLines(rows, columns && columns - INDENT.length));
}

const INDENT = '  ';
const GAP = '  ';
/** The most characters of a line: longer ones are hard to read, even if the terminal is wider. */
const MAX_LINE_LENGTH = 110;
/** The largest share of a line for names; the text for a longer name begins on the next line. */
const NAME_SHARE = 0.4;

/** Names and their texts in two columns, within `columns` characters; without `columns`, as in a pipe, each row is one line. */
export function rowLines(rows: readonly HelpRow[], columns?: number): string[] {
  const width = columns === undefined ? Number.POSITIVE_INFINITY : Math.min(columns, MAX_LINE_LENGTH);
  const fitting = rows.map(([name]) => name.length).filter((length) => length <= width * NAME_SHARE);
  const nameWidth = Math.max(0, ...fitting);
  return rows.flatMap(([name, text]) => {
    const lines = wrapLines(text, width - nameWidth - GAP.length);
    const [first = '', ...rest] = name.length <= nameWidth ? lines : ['', ...lines];
    const below = rest.map((line) => `${' '.repeat(nameWidth)}${GAP}${line}`);
    return [`${name.padEnd(nameWidth)}${GAP}${first}`.trimEnd(), ...below];
  });
}

export function wrapLines(text: string, width: number): string[] {
  const lines = [''];
  let used = 0;
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    const taken = widthOf(word); // of the word alone: a line may have a million
    const isFirst = line === '';
    const next = isFirst ? taken : used + 1 + taken;
    const isFull = !isFirst && next > width;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = isFirst ? word : `${line} ${word}`;
    used = isFull ? taken : next;
  }
  return lines;
}

/** Letters of East Asian scripts and emoji, which take two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/gu;

export function widthOf(text: string): number {
  return stripVTControlCharacters(text).replace(WIDE, '##').length;
}
