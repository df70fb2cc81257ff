// `stagedoor gateway list`: every registered instance and its state.

import { basename } from 'node:path';
import { ownCommand } from '../../domain/version.ts';
import { type Fields, instancesOf, itemsOf, shownReasonOf, shownStateOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf, WIDE_OPTION } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { printResult, stateWord, table } from '../output.ts';
import type { Terminal } from '../terminal.ts';

export const list: CommandDefinition = {
  name: 'gateway list',
  summary: 'List every registered instance and its state',
  options: { ...WIDE_OPTION, ...CLIENT_OPTIONS },
  examples: ['gateway list', 'gateway list --wide', 'gateway list --json'],
  run: async (input, terminal) => {
    const gateway = await gatewayOf(input, terminal);
    const registry = await gateway.request('/gateway/registry');
    const isWide = input.has('wide');
    return printResult(input, terminal, registry, () => listing(terminal, registry, isWide));
  },
};

function listing(terminal: Terminal, registry: unknown, isWide: boolean): string {
  const records = instancesOf(registry);
  if (records.length === 0)
    return `No instance is registered; "${ownCommand('gateway register --help')}" shows how.`;
  // The usual weight is left out like a zero.
  const isEven = !isWide && terminal.columns !== undefined && records.every(({ weight }) => weight === 1);
  return table(
    terminal,
    {
      TEMPLATE: 'template_name',
      INSTANCE: 'id',
      TRANSPORT: 'transport',
      STATE: (record) => stateWord(terminal, shownStateOf(record)),
      WEIGHT: ({ weight }) => (isEven ? '' : weight),
      'IN FLIGHT': 'in_flight',
      SESSIONS: ({ sessions }) => sessions ?? 0,
      'OWN PROCESSES': ({ own_processes: processes }) => processes ?? 0,
      BACKEND: (record) => target(record, terminal.columns !== undefined),
      REASON: shownReasonOf,
    },
    records,
    { isWide },
  );
}

/**
 * The command of the instance, else its address. For a person the folder of the program is left out, and long words are cut at
 * their front, the least useful part of a path.
 */
function target({ command, args, endpoint }: Fields, isForPeople: boolean): string {
  if (typeof command !== 'string') return String(endpoint ?? '');
  const words = itemsOf(args).map(String);
  if (!isForPeople) return [command, ...words].join(' ');
  const line = [basename(command), ...words.map(shortened)].join(' ');
  return line.length > LONGEST_TARGET ? `${line.slice(0, LONGEST_TARGET - 1)}…` : line;
}

function shortened(word: string): string {
  return word.length > LONGEST_WORD ? `…${word.slice(1 - LONGEST_WORD)}` : word;
}

/** Commands can be of any length, terminals are not. */
const LONGEST_TARGET = 60;
const LONGEST_WORD = 32;
