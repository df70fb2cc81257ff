// `stagedoor gateway logs`: what a gateway in the background has logged, and what it goes on to log.

import { DAEMON_OPTIONS, daemonFiles } from '../background/daemon-files.ts';
import type { CommandDefinition } from '../command.ts';
import { readSettings } from '../setting-options.ts';

/** Lines that are shown unless --lines says otherwise, and the most. */
const LINES = 100;
const MOST_LINES = 100_000;

/** Row of the command table. */
export const logs: CommandDefinition = {
  name: 'gateway logs',
  positionals: '',
  summary: 'Show the log of a gateway in the background',
  options: [
    { flags: '--follow', short: 'f', description: 'Go on with what it logs from now on, until Ctrl-C' },
    {
      flags: '--lines <number>',
      short: 'n',
      description: `How many of the last lines to begin with; default ${LINES}`,
    },
    {
      flags: '--json',
      description: 'Print the records as they are in the file; the default where no terminal is written to',
    },
    ...DAEMON_OPTIONS,
  ],
  examples: ['gateway logs', 'gateway logs -f', 'gateway logs --lines 1000 --json'],
  run: async (input, terminal) => {
    const { showLog } = await import('../background/show-log.ts');
    const files = await daemonFiles(readSettings(input, terminal), terminal);
    await showLog(files, terminal, {
      lines: input.number('lines', { minimum: 0, maximum: MOST_LINES }) ?? LINES,
      isFollowed: input.switch('follow') === true,
      isRaw: input.switch('json') === true || terminal.columns === undefined,
    });
    return 0;
  },
};
