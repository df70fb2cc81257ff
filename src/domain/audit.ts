// The entries of the audit log, their ids, and filters for them. auth/audit.ts records them.

import type { CallOutcome } from './call-report.ts';

export interface AuditEntry {
  /** UUID version 7: ids sort by time as texts. */
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** `Principal.id`, `local` for the command line on the database, or `unknown` before a login. */
  readonly actor: string;
  readonly actorName: string;
  /** Method and path pattern; a command on the database is recorded like the equivalent request. */
  readonly action: string;
  /** The subject of the action: a path of the API. */
  readonly subject: string;
  /** HTTP status of the answer; 0 without HTTP. */
  readonly status: number;
  readonly address?: string;
  readonly requestId?: string;
  /** Set for the call of a tool, whose `action` is CALL_ACTION. */
  readonly call?: AuditedCall;
}

export const CALL_ACTION = 'tools/call';

export interface AuditedCall {
  /** From the path, else from the instance; empty when neither is known. */
  readonly template: string;
  readonly tool: string;
  /** The last instance that it was sent to, if any. */
  readonly instance?: string;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  readonly attempts: number;
  /** SHA-256 of the received arguments, hexadecimal; absent without arguments. */
  readonly digest?: string;
  /** The beginning of the arguments, if the setting audit.arguments is on. */
  readonly arguments?: string;
}

export interface AuditFilter {
  /** Id or name. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly status?: number | undefined;
  /** The fields from here on match calls only. */
  readonly template?: string | undefined;
  readonly tool?: string | undefined;
  readonly outcome?: CallOutcome | undefined;
}

export function isMatch(
  { actor, actorName, action, status, call }: AuditEntry,
  filter: AuditFilter,
): boolean {
  return (
    (filter.actor === undefined || actor === filter.actor || actorName === filter.actor) &&
    (filter.action === undefined || action === filter.action) &&
    (filter.status === undefined || status === filter.status) &&
    (filter.template === undefined || call?.template === filter.template) &&
    (filter.tool === undefined || call?.tool === filter.tool) &&
    (filter.outcome === undefined || call?.outcome === filter.outcome)
  );
}

export function newestFirst(left: AuditEntry, right: AuditEntry): number {
  return left.id < right.id ? 1 : -1;
}

const TIME_DIGITS = 12;

/** The beginning of all ids of that millisecond (since 1970), which sorts before each of them. */
export function idAt(ms: number): string {
  const latest = 16 ** TIME_DIGITS - 1;
  const time = Math.max(0, Math.min(latest, Math.floor(ms)))
    .toString(16)
    .padStart(TIME_DIGITS, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

/** The millisecond of an id, or of its beginning; of any other text infinite. */
export function timeOf(id: string): number {
  const [, high = '', low = ''] = /^([0-9a-f]{8})-([0-9a-f]{4})/.exec(id) ?? [];
  return high === '' ? Number.POSITIVE_INFINITY : Number.parseInt(high + low, 16);
}
