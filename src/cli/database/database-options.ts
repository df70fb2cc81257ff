// The options that say which database a command works on; the rest comes from the environment and gateway.yaml, as it
// does for `gateway start`. Opening it is open-database.ts.

import type { OptionDefinition } from '../command.ts';

/** `--database` refuses a URL with a password: config.ts does, for it is a setting. */
export const DATABASE_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--database <url>',
    description:
      'Database to work on; default what a gateway started here would use. GATEWAY_DATABASE_URL may hold a password',
  },
  { flags: '--config <file>', description: 'Configuration file; default gateway.yaml when it exists' },
];
