// `stagedoor gateway start`: runs a gateway in the foreground until it is told to stop.
// Only the options are here; running is run-gateway.ts, which loads everything that is heavy.

import type { CommandDefinition } from '../command.ts';
import { readSettings, SETTING_OPTIONS } from '../setting-options.ts';

/** Row of the command table. */
export const start: CommandDefinition = {
  name: 'gateway start',
  positionals: '',
  summary: 'Start a gateway; runs until Ctrl-C or SIGTERM, then finishes the calls in flight',
  options: [
    { flags: '--demo', description: 'Start real MCP servers behind it and show calls to try; loopback only' },
    ...SETTING_OPTIONS,
    { flags: '--sync', description: 'Sync with existing deployments', notYet: true },
    { flags: '--background', description: 'Run detached', notYet: true },
  ],
  examples: [
    'gateway start --demo',
    'gateway start --port 9000 --registry servers.json',
    'gateway start --config gateway.yaml --log-level warn',
  ],
  run: async (input, terminal) => {
    const isDemo = input.switch('demo') === true;
    // The demo runs programs for whoever can call it, so it stays on this machine unless --host says otherwise.
    const config = readSettings(input, terminal, isDemo ? { host: '127.0.0.1' } : {});
    const { runGateway } = await import('../run-gateway.ts');
    return runGateway(config, { isDemo, terminal });
  },
};
