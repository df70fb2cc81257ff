// `stagedoor gateway stop`: ends the gateway that `gateway start --background` started.

import { DAEMON_OPTIONS, daemonFiles } from '../background/daemon-files.ts';
import type { CommandDefinition } from '../command.ts';
import { readSettings } from '../setting-options.ts';

/** Row of the command table. */
export const stop: CommandDefinition = {
  name: 'gateway stop',
  positionals: '',
  summary: 'End the gateway that runs in the background, when the calls in flight have ended',
  options: DAEMON_OPTIONS,
  examples: ['gateway stop', 'gateway stop --state-dir /var/lib/stagedoor'],
  run: async (input, terminal) => {
    const { requireDaemon, stopDaemon } = await import('../background/stop-daemon.ts');
    const daemon = await requireDaemon(await daemonFiles(readSettings(input, terminal), terminal));
    await stopDaemon(daemon, terminal);
    terminal.print(`stopped: process ${daemon.pid}, ${daemon.url}`);
    return 0;
  },
};
