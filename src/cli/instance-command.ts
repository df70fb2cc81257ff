// The commands that tell one instance of a running gateway what to do: drain, resume, restart.
// What that means is the gateway's; here is only how it is asked and what is said of it.

import { type Fields, fields } from './answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from './client-options.ts';
import type { CommandDefinition } from './command.ts';

/** What differs between them. */
export interface InstanceCommand {
  /** Last word of the command, and of its route. */
  readonly word: 'drain' | 'resume' | 'restart';
  readonly summary: string;
  /** What is so from now on, after the name of the instance. */
  readonly done: (record: Fields) => string;
}

/** The row of the command table. */
export function instanceCommand({ word, summary, done }: InstanceCommand): CommandDefinition {
  return {
    name: `gateway ${word}`,
    positionals: '<template> <id>',
    summary,
    options: CLIENT_OPTIONS,
    examples: [`gateway ${word} search search-1`],
    run: async (input, terminal) => {
      const [template, id] = [input.positional(0), input.positional(1)];
      const gateway = await gatewayOf(input, terminal);
      const path = `/gateway/instances/${encodeURIComponent(template)}/${encodeURIComponent(id)}/${word}`;
      const record = fields(await gateway.request(path, { method: 'POST' }));
      const { json } = await import('./output.ts');
      terminal.print(input.switch('json') ? json(record) : `${id} of ${template} ${done(record)}`);
      return 0;
    },
  };
}

/** `2 calls and 1 session are there`; an empty text when there is nothing. */
export function leftThere({ in_flight: calls, sessions }: Fields): string {
  const parts = [counted(calls, 'call'), counted(sessions, 'session')].filter((part) => part !== '');
  if (parts.length === 0) return '';
  return `${parts.join(' and ')} ${parts.length === 1 && parts[0]?.startsWith('1 ') ? 'is' : 'are'} there`;
}

function counted(count: unknown, what: string): string {
  if (typeof count !== 'number' || count === 0) return '';
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
