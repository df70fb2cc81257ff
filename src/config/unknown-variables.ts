// Finds variables that look like settings of the gateway and are none: most often a name that was not typed right.
// Only the prefix MCP_GATEWAY_ is ours alone; variables of others begin with GATEWAY_, too.

import { nearest } from './nearest.ts';
import { SETTINGS, type SettingNames } from './settings.ts';
import type { Environment } from './sources.ts';

const PREFIX = 'MCP_GATEWAY_';

/** Kubernetes sets these in every pod beside a Service called "mcp-gateway". */
const SERVICE_LINK = /^(SERVICE_(HOST|PORT(_.+)?)|PORT_\d+_.+)$/;

/** One line for each unknown variable, with the name that was probably meant. Values are not repeated. */
export function unknownVariables(environment: Environment): string[] {
  const settings: readonly SettingNames[] = Object.values(SETTINGS);
  const known = settings.flatMap(({ variable, secret }) =>
    secret ? [variable, `${variable}_FILE`] : [variable],
  );
  return Object.entries(environment)
    .filter(([name, value]) => name.startsWith(PREFIX) && value)
    .map(([name]) => name.slice(PREFIX.length))
    .filter((name) => !known.includes(name) && !SERVICE_LINK.test(name))
    .map(
      (name) =>
        `${PREFIX}${name} has no effect: there is no such setting, the nearest is ${PREFIX}${nearest(name, known)}`,
    );
}
