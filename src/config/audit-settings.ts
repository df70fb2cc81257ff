// Rows of the table of settings: the audit log (ADR 77, 78).

import { LIMITS } from '../domain/limits.ts';
import { boolean, integer, setting } from './setting-types.ts';

export const AUDIT_SETTINGS = {
  recordsCalls: setting({
    key: 'audit.calls',
    flag: 'audit-calls',
    variable: 'AUDIT_CALLS',
    kind: boolean,
    default: true,
    doc: 'Whether each call of a tool is an entry of the audit log. See docs/guides/observability.md.',
  }),
  storesArguments: setting({
    key: 'audit.arguments',
    flag: 'audit-arguments',
    variable: 'AUDIT_ARGUMENTS',
    kind: boolean,
    default: false,
    doc: `Whether such an entry has the first ${LIMITS.auditArgumentUnits} characters of the arguments, which may be secret, and not only their SHA-256.`,
  }),
  keptCalls: setting({
    key: 'audit.max_calls',
    flag: 'audit-max-calls',
    variable: 'AUDIT_MAX_CALLS',
    kind: integer(1_000, 100_000_000, 'entries'),
    default: 200_000,
    doc: 'Calls that the audit log keeps, the newest ones.',
  }),
  keptDays: setting({
    key: 'audit.retention_days',
    flag: 'audit-retention-days',
    variable: 'AUDIT_RETENTION_DAYS',
    kind: integer(0, 36_500, 'days'),
    default: 90,
    doc: 'Older entries of the audit log are deleted, those of changes and logins, too; 0 keeps them.',
  }),
};
