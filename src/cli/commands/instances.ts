// `stagedoor gateway deregister | drain | resume | restart | delete-template`: commands about one instance or template of a
// running gateway. `restart` without arguments restarts the gateway in the background.

import { type Fields, fields } from '../answers.ts';
import { DAEMON_OPTIONS, daemonFiles } from '../background/daemon-files.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';
import { printResult } from '../output.ts';
import { readSettings } from '../setting-options.ts';

export const deregister: CommandDefinition = {
  name: 'gateway deregister',
  positionals: '<template> <id>',
  summary: 'Deregister an instance; its calls in flight finish',
  options: CLIENT_OPTIONS,
  examples: ['gateway deregister search search-1'],
  run: async (input, terminal) => {
    const [template, id] = [input.positional(0), input.positional(1)];
    const gateway = await gatewayOf(input, terminal);
    const path = `/gateway/deregister/${encodeURIComponent(template)}/${encodeURIComponent(id)}`;
    await gateway.request(path, { method: 'DELETE' });
    const done = { template_name: template, instance_id: id, deregistered: true };
    return printResult(input, terminal, done, `${id} is deregistered from ${template}`);
  },
};

export const drain = instanceCommand({
  word: 'drain',
  summary: 'Send an instance no new calls until it is resumed or the gateway restarts; it keeps running',
  done: (record) => {
    const left = leftThere(record);
    return `gets no new calls until it is resumed${left && `; ${left}`}`;
  },
});

export const resume = instanceCommand({
  word: 'resume',
  summary: 'Send calls to a drained instance again',
  done: ({ state }) => `gets calls again: ${String(state)}`,
});

const restartInstance = instanceCommand({
  word: 'restart',
  summary: 'Restart the gateway in the background, or one instance when its calls have ended',
  done: (record) => {
    const left = leftThere(record);
    return left === '' ? 'restarts' : `restarts when its calls have ended, after 30 s at the latest; ${left}`;
  },
});

/** Without arguments: the gateway in the background. With template and id: one instance. */
export const restart: CommandDefinition = {
  ...restartInstance,
  positionals: '[template] [id]',
  options: { ...restartInstance.options, ...DAEMON_OPTIONS },
  examples: ['gateway restart', ...(restartInstance.examples ?? [])],
  run: async (input, terminal) => {
    if (input.positionals.length === 2) return restartInstance.run(input, terminal);
    if (input.positionals.length === 1) {
      throw new UsageError(
        'missing required argument <id>; without arguments the gateway in the background restarts',
      );
    }
    const { requireDaemon, restartDaemon } = await import('../background/start-daemon.ts');
    const config = readSettings(input, terminal);
    const daemon = await requireDaemon(await daemonFiles(config, terminal));
    return restartDaemon(daemon, terminal);
  },
};

export const deleteTemplate: CommandDefinition = {
  name: 'gateway delete-template',
  positionals: '<template>',
  summary: 'Delete a template that has no instances, and its settings',
  options: CLIENT_OPTIONS,
  examples: ['gateway delete-template search'],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const gateway = await gatewayOf(input, terminal);
    await gateway.request(`/gateway/templates/${encodeURIComponent(template)}`, { method: 'DELETE' });
    const done = { template_name: template, deleted: true };
    return printResult(input, terminal, done, `${template} is deleted`);
  },
};

interface InstanceCommand {
  /** Last word of the command, and of its route. */
  readonly word: 'drain' | 'resume' | 'restart';
  readonly summary: string;
  /** The new situation, printed after the name of the instance. */
  readonly done: (record: Fields) => string;
}

function instanceCommand({ word, summary, done }: InstanceCommand): CommandDefinition {
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
      return printResult(input, terminal, record, `${id} of ${template} ${done(record)}`);
    },
  };
}

/** `2 calls and 1 session remain`; an empty text when there is nothing. */
export function leftThere({ in_flight: calls, sessions }: Fields): string {
  const parts = [counted(calls, 'call'), counted(sessions, 'session')].filter((part) => part !== '');
  if (parts.length === 0) return '';
  return `${parts.join(' and ')} ${parts.length === 1 && parts[0]?.startsWith('1 ') ? 'remains' : 'remain'}`;
}

function counted(count: unknown, what: string): string {
  if (typeof count !== 'number' || count === 0) return '';
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
