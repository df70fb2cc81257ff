// Columns of users and API keys in tables, from records of the API.

import type { Fields } from '../answers.ts';
import type { Columns } from '../output.ts';

/** The log and the audit log use the id: `user:<id>`. */
export const USER_COLUMNS: Columns<Fields> = {
  USER: 'username',
  ROLE: 'role',
  'E-MAIL': 'email',
  TEMPLATES: templatesOf,
  STATE: ({ is_active: isActive }) => (isActive === false ? 'disabled' : 'active'),
  CREATED: ({ created_at: at }) => minute(at),
  ID: 'id',
};

/** `disabled`: the names of the disabled users, whose keys are not valid. */
export function apiKeyColumns(nowMs: number, disabled: ReadonlySet<string>): Columns<Fields> {
  return {
    ID: 'id',
    NAME: 'name',
    PERMISSIONS: 'permissions',
    TEMPLATES: templatesOf,
    STATE: (key) => keyState(key, nowMs, disabled),
    EXPIRES: ({ expires_at: at }) => minute(at ?? 'never'),
    'LAST USED': ({ last_used_at: at }) => minute(at ?? 'never'),
    'CREATED BY': ({ created_by: user }) => user ?? 'the operator',
  };
}

/** `expired` goes before the state of the owner. */
function keyState(key: Fields, nowMs: number, disabled: ReadonlySet<string>): string {
  if (key.is_active !== false) return 'active';
  if (hasExpired(key, nowMs)) return 'expired';
  return disabled.has(String(key.created_by)) ? 'owner disabled' : 'not valid';
}

/** False for a key that never does. */
export function hasExpired({ expires_at: expiresAt }: Fields, nowMs: number): boolean {
  return typeof expiresAt === 'string' && Date.parse(expiresAt) <= nowMs;
}

/** A time to the minute, in UTC as everywhere: `2027-01-31 12:00Z`; any other text as it is. */
export function minute(value: unknown): string {
  return String(value ?? '').replace(/^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})[\d:.]*Z$/, '$1 $2Z');
}

function templatesOf({ templates }: Fields): unknown {
  if (!Array.isArray(templates)) return 'all';
  return templates.length === 0 ? 'none' : templates;
}
