// The entries of the audit log, and what they are looked for by. Recording is auth/audit.ts.

import type { CallOutcome } from './call-report.ts';

/** One line of the audit log: the actor, the action, its subject and its outcome. */
export interface AuditEntry {
  /** Sorts by time. */
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** `Principal.id`, `local` for the command line on the database, or `unknown` before a login. */
  readonly actor: string;
  readonly actorName: string;
  /** Method and path pattern; what a command does on the database is recorded as the request that would do it. */
  readonly action: string;
  /** The subject of the action: a path of the API. */
  readonly subject: string;
  /** HTTP status of the answer; 0 without HTTP. */
  readonly status: number;
  /** Address of the client, when there was one. */
  readonly address?: string;
  readonly requestId?: string;
  /** Of the call of a tool, whose `action` is CALL_ACTION; absent for a change or a login. */
  readonly call?: AuditedCall;
}

export const CALL_ACTION = 'tools/call';

/** What the audit log has of the call of a tool besides. */
export interface AuditedCall {
  /** Of the path, else of the instance; empty when neither is known. */
  readonly template: string;
  readonly tool: string;
  /** The instance that had it last; absent when none had it. */
  readonly instance?: string;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  readonly attempts: number;
  /** SHA-256 of the arguments as they were received, in hexadecimal digits; absent without arguments. */
  readonly digest?: string;
  /** Their beginning, where the setting audit.arguments is on. */
  readonly arguments?: string;
}

/** What entries of the audit log are looked for by: those that match every field that is there. */
export interface AuditFilter {
  /** Id or name. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly status?: number | undefined;
  /** The others match calls only. */
  readonly template?: string | undefined;
  readonly tool?: string | undefined;
  readonly outcome?: CallOutcome | undefined;
}
