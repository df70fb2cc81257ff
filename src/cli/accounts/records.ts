// Rows of users and API keys in tables, from records of the API. A field that a gateway of another version lacks is shown empty.

import type { Fields } from '../answers.ts';

/** The log and the audit log use the id: `user:<id>`. */
export const USER_HEADINGS = ['USER', 'ROLE', 'E-MAIL', 'TEMPLATES', 'STATE', 'CREATED', 'ID'] as const;

export function userRow(user: Fields): readonly string[] {
  return [
    text(user.username),
    text(user.role),
    text(user.email),
    templates(user.templates),
    user.is_active === false ? 'disabled' : 'active',
    minute(user.created_at),
    text(user.id),
  ];
}

export const API_KEY_HEADINGS = [
  ...['ID', 'NAME', 'PERMISSIONS', 'TEMPLATES', 'STATE', 'EXPIRES', 'LAST USED', 'CREATED BY'],
] as const;

/** Reasons why a key is not valid that its record does not contain. */
export interface KeyCircumstances {
  readonly nowMs: number;
  /** Names of the disabled users. */
  readonly disabled: ReadonlySet<string>;
}

export function apiKeyRow(key: Fields, circumstances: KeyCircumstances): readonly string[] {
  return [
    text(key.id),
    text(key.name),
    list(key.permissions),
    templates(key.templates),
    keyState(key, circumstances),
    key.expires_at === null || key.expires_at === undefined ? 'never' : minute(key.expires_at),
    key.last_used_at === null || key.last_used_at === undefined ? 'never' : minute(key.last_used_at),
    text(key.created_by ?? 'the operator'),
  ];
}

/** `expired` goes before the state of the owner. */
function keyState(key: Fields, { nowMs, disabled }: KeyCircumstances): string {
  if (key.is_active !== false) return 'active';
  if (hasExpired(key, nowMs)) return 'expired';
  return disabled.has(text(key.created_by)) ? 'owner disabled' : 'not valid';
}

/** False for a key that never does. */
export function hasExpired({ expires_at: expiresAt }: Fields, nowMs: number): boolean {
  return typeof expiresAt === 'string' && Date.parse(expiresAt) <= nowMs;
}

/** `tools:call, gateway:read`. */
export function list(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(', ') : '';
}

/** A time to the minute, in UTC as everywhere: `2027-01-31 12:00Z`. */
export function minute(value: unknown): string {
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})[\d:.]*Z$/.exec(text(value)) ?? [];
  return day === undefined ? text(value) : `${day} ${time}Z`;
}

function templates(value: unknown): string {
  return Array.isArray(value) ? list(value) || 'none' : 'all';
}

function text(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}
