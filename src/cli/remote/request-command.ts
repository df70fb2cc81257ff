// Commands that send one request about a template or an instance and print its answer; with --wait they ask for the record
// until the change has taken effect.

import { setTimeout as sleep } from 'node:timers/promises';
import { definedFields } from '../../domain/json/json.ts';
import type { Command, CommandInput, OptionTable } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { printResult } from '../output.ts';
import { type Fields, fields } from './answers.ts';
import { CLIENT_OPTIONS } from './client-options.ts';
import { requireGateway } from './find-gateway.ts';
import { ofTemplate } from './similar-names.ts';

interface RequestCommand extends Pick<Command, 'name' | 'positionals' | 'summary'> {
  /** The method and the path of the request; the arguments are encoded. */
  readonly request: (template: string, id: string) => readonly ['POST' | 'DELETE', path: string];
  readonly textOf: (template: string, id: string, answer: Fields) => string;
  /** The record that --json prints, with the names, in place of the answer. */
  readonly record?: Fields;
  /** The state that `--wait` waits for. */
  readonly wait?: AwaitedState;
}

/** What a command waits for. `names`: the arguments of the command. `first`: the answer to the command itself. */
export interface AwaitedState {
  /** Completes `Wait until`, for help. */
  readonly until: string;
  readonly isReached: (record: Fields, first: Fields) => boolean;
  readonly textOf: (names: readonly string[], record: Fields) => string;
  /** The reason of the failure when the time is over. */
  readonly failureOf: (names: readonly string[], record: Fields, waitSeconds: number) => string;
}

/** The longest wait, in seconds, and the interval between two questions, in ms. */
const MAX_WAIT_SECONDS = 3600;
const ASK_MS = 500;

export function waitOption({ until }: AwaitedState): OptionTable {
  return { '--wait <seconds>': `Wait until ${until}; exit code 1 when that is not so by then` };
}

export function waitSecondsIn(input: CommandInput): number | undefined {
  return input.number('wait', { minimum: 0, maximum: MAX_WAIT_SECONDS });
}

/** The first record in which the state is reached. Throws CommandFailure when the time is over. */
export async function awaited(
  { positionals }: CommandInput,
  wait: AwaitedState,
  {
    waitSeconds,
    first,
    read,
  }: { readonly waitSeconds: number; readonly first: Fields; readonly read: () => Promise<Fields> },
): Promise<Fields> {
  const endsAtMs = performance.now() + waitSeconds * 1000;
  let record = first;
  while (!wait.isReached(record, first)) {
    const leftMs = endsAtMs - performance.now();
    if (leftMs <= 0) throw new CommandFailure(wait.failureOf(positionals, record, waitSeconds));
    await sleep(Math.min(ASK_MS, leftMs));
    record = await read();
  }
  return record;
}

/** A command that sends one request about an instance or a template. */
export function requestCommand(definition: RequestCommand): Command {
  const { positionals = '<template> <id>', request, textOf, record, wait, ...rest } = definition;
  const example = positionals.replace('<template>', 'search').replace('<id>', 'search-1');
  return {
    ...rest,
    positionals,
    options: { ...(wait && waitOption(wait)), ...CLIENT_OPTIONS },
    examples: [`${rest.name} ${example}`, ...(wait ? [`${rest.name} ${example} --wait 60`] : [])],
    run: async (input, terminal) => {
      const [template = '', id] = input.positionals;
      const waitSeconds = waitSecondsIn(input);
      const gateway = await requireGateway(input, terminal);
      const [method, path] = request(encodeURIComponent(template), encodeURIComponent(id ?? ''));
      const answer = fields(
        await ofTemplate(gateway, template, () => gateway.request(path, { method }), { id }),
      );
      if (wait !== undefined && waitSeconds !== undefined) {
        const read = async () => fields(await gateway.request(instancePath(template, id ?? '')));
        const last = await awaited(input, wait, { waitSeconds, first: answer, read });
        return printResult(input, terminal, last, wait.textOf(input.positionals, last));
      }
      const names = { template_name: template, ...definedFields({ instance_id: id }) };
      const shown = record === undefined ? answer : { ...names, ...record };
      return printResult(input, terminal, shown, textOf(template, id ?? '', answer));
    },
  };
}

export function instancePath(template: string, id: string): string {
  return `/gateway/instances/${encodeURIComponent(template)}/${encodeURIComponent(id)}`;
}
