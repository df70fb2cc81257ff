// When an API key expires: `--expires`, as a time or as a span from now.

import { timestampOf } from '../../domain/timestamp.ts';
import { UsageError } from '../failures.ts';

const HOUR_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS, w: 7 * 24 * HOUR_MS };
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;

/**
 * `2027-01-31T00:00:00Z` as it is, `2027-01-31` as the start of that day in UTC, `12h`, `30d` and `8w` from now on;
 * ISO 8601 in UTC. Throws UsageError.
 */
export function readExpiry(written: string, nowMs: number = Date.now()): string {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(written) ?? [];
  const atMs = count === undefined ? timeOf(written) : nowMs + Number(count) * (UNIT_MS[unit] ?? 0);
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `--expires takes a time such as 2027-01-31T00:00:00Z, a day such as 2027-01-31, or a span such as 12h, 30d or 8w, not "${written}"`,
    );
  }
  if (atMs <= nowMs) throw new UsageError(`--expires must be in the future, not "${written}"`);
  return new Date(atMs).toISOString();
}

/** NaN for what is no time. */
function timeOf(written: string): number {
  return timestampOf(ISO_DAY.test(written) ? `${written}T00:00Z` : written);
}
