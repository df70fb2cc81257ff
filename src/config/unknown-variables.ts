// Finds variables that look like settings of the gateway and are none: most often a name that was not typed right.
// Only the prefix MCP_GATEWAY_ is ours alone. Variables of others begin with GATEWAY_, too: of those only near misses count.

import { nearest, nearMiss } from './nearest.ts';
import type { SettingNames } from './setting.ts';
import { SETTINGS } from './settings.ts';
import type { Environment } from './sources.ts';

const [OURS, SHARED] = ['MCP_GATEWAY_', 'GATEWAY_'];

/** Kubernetes sets these in every pod beside a Service called "mcp-gateway" or "gateway". */
const SERVICE_LINK = /^(SERVICE_(HOST|PORT(_.+)?)|PORT_\d+_.+)$/;

/** One line for each unknown variable, with the name that was probably meant. Values are not repeated. */
export function unknownVariables(environment: Environment): string[] {
  const settings: readonly SettingNames[] = Object.values(SETTINGS);
  const known = settings.flatMap(({ variable, secret }) =>
    secret ? [variable, `${variable}_FILE`] : [variable],
  );
  const unknown = (prefix: string): readonly string[] =>
    Object.entries(environment)
      .filter(([name, value]) => name.startsWith(prefix) && value)
      .map(([name]) => name.slice(prefix.length))
      .filter((name) => !known.includes(name) && !SERVICE_LINK.test(name));
  return [
    ...unknown(OURS).map(
      (name) =>
        `${OURS}${name} has no effect: there is no such setting, the nearest is ${OURS}${nearest(name, known)}`,
    ),
    ...unknown(SHARED).flatMap((name) => {
      const meant = nearMiss(name, known);
      return meant === undefined
        ? []
        : [`${SHARED}${name} has no effect: there is no such setting; did you mean ${SHARED}${meant}?`];
    }),
  ];
}
