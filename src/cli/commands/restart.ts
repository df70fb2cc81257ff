// `stagedoor gateway restart`: without arguments the gateway in the background, with template and id one instance, whose
// program is started anew, or whose endpoint is connected to again.

import { DAEMON_OPTIONS, daemonFiles } from '../background/daemon-files.ts';
import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';
import { instanceCommand, leftThere } from '../instance-command.ts';
import { readSettings } from '../setting-options.ts';

const ofInstance = instanceCommand({
  word: 'restart',
  summary: 'Restart the gateway in the background, or one instance when its calls have ended',
  done: (record) => {
    const left = leftThere(record);
    return left === '' ? 'restarts' : `restarts when its calls have ended, in 30 s at the latest; ${left}`;
  },
});

/** Row of the command table. */
export const restart: CommandDefinition = {
  ...ofInstance,
  positionals: '[template] [id]',
  options: [...ofInstance.options, ...DAEMON_OPTIONS],
  examples: ['gateway restart', ...(ofInstance.examples ?? [])],
  run: async (input, terminal) => {
    if (input.positionals.length === 2) return ofInstance.run(input, terminal);
    if (input.positionals.length === 1) {
      throw new UsageError(
        'name the template and the id of an instance, or neither to restart the gateway in the background',
      );
    }
    const { requireDaemon } = await import('../background/stop-daemon.ts');
    const { restartDaemon } = await import('../background/start-daemon.ts');
    const config = readSettings(input, terminal);
    const daemon = await requireDaemon(await daemonFiles(config, terminal));
    return restartDaemon(daemon, terminal);
  },
};
