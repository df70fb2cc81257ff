// The levels of log lines. Source: MCP server/utilities/logging, after RFC 5424 section 6.2.1.

/** From the least to the most severe. */
const LEVELS: readonly unknown[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

export function isLogLevel(level: unknown): level is string {
  return LEVELS.includes(level);
}

/** The rank of a level, the least severe at 0; undefined for an unknown level. */
export function logRankOf(level: unknown): number | undefined {
  const rank = LEVELS.indexOf(level);
  return rank === -1 ? undefined : rank;
}

/** True when the level `set` includes lines of `level`. It includes an unknown level, so that no line is lost. */
export function includesLevel(set: string, level: unknown): boolean {
  const rank = logRankOf(level);
  return rank === undefined || rank >= LEVELS.indexOf(set);
}
