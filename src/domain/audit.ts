// The entries of the audit log, and filters for them. auth/audit.ts records them.

import type { CallOutcome } from './call-report.ts';

export interface AuditEntry {
  /** In order of time. */
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
  /** Address of the client, when there was one. */
  readonly address?: string;
  readonly requestId?: string;
  /** Set for the call of a tool, whose `action` is CALL_ACTION. */
  readonly call?: AuditedCall;
}

export const CALL_ACTION = 'tools/call';

/** The fields of the call of a tool. */
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

/** Matches entries of the audit log that have all given values. */
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
