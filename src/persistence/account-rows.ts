// Users, API keys and audit entries as rows and back.

import {
  type ApiKey,
  type AuditEntry,
  type Role,
  type Scope,
  type User,
  usernameKey,
} from '../domain/account.ts';
import { type ApiKeyRow, type AuditRow, fromDocument, toDocument, type UserRow } from './entities.ts';


export function rowOfUser(user: User) {
  return {
    id: user.id,
    username: user.username,
    usernameKey: usernameKey(user.username),
    email: user.email,
    role: user.role,
    templates: user.templates === undefined ? null : toDocument(user.templates),
    isActive: user.isActive ? 1 : 0,
    passwordHash: user.passwordHash,
    credentialsChangedAt: new Date(user.credentialsChangedAt),
    createdAt: new Date(user.createdAt),
    updatedAt: new Date(user.updatedAt),
  } satisfies Omit<UserRow, 'position'>;
}

/** The casts here and below are what the `rowOf` functions wrote. */
export function userOf(row: UserRow): User {
  return {
    id: row.id,
    username: row.username,
    email: row.email,
    role: row.role as Role,
    ...templatesOf(row.templates),
    isActive: row.isActive === 1,
    passwordHash: row.passwordHash,
    credentialsChangedAt: row.credentialsChangedAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

export function rowOfApiKey(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    permissions: toDocument(key.permissions),
    templates: key.templates === undefined ? null : toDocument(key.templates),
    expiresAt: key.expiresAt === undefined ? null : new Date(key.expiresAt),
    ownerId: key.ownerId ?? null,
    secretHash: key.secretHash,
    createdAt: new Date(key.createdAt),
    lastUsedAt: key.lastUsedAt === undefined ? null : new Date(key.lastUsedAt),
  } satisfies Omit<ApiKeyRow, 'position'>;
}

export function apiKeyOf(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    permissions: fromDocument(row.permissions) as Scope[],
    ...templatesOf(row.templates),
    ...(row.expiresAt ? { expiresAt: row.expiresAt.toISOString() } : {}),
    ...(row.ownerId ? { ownerId: row.ownerId } : {}),
    secretHash: row.secretHash,
    createdAt: row.createdAt.toISOString(),
    ...(row.lastUsedAt ? { lastUsedAt: row.lastUsedAt.toISOString() } : {}),
  };
}

/** Its texts fit: whoever records it has cut them to LIMITS.auditTextUnits. */
export function rowOfAudit(entry: AuditEntry) {
  return {
    id: entry.id,
    at: new Date(entry.at),
    actor: entry.actor,
    actorName: entry.actorName,
    action: entry.action,
    subject: entry.subject,
    status: entry.status,
    address: entry.address ?? null,
    requestId: entry.requestId ?? null,
  } satisfies AuditRow;
}

export function auditOf(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    at: row.at.toISOString(),
    actor: row.actor,
    // Oracle keeps an empty text as null.
    actorName: row.actorName ?? '',
    action: row.action,
    subject: row.subject ?? '',
    status: row.status,
    ...(row.address ? { address: row.address } : {}),
    ...(row.requestId ? { requestId: row.requestId } : {}),
  };
}

function templatesOf(document: string | null | undefined): { templates?: string[] } {
  return document ? { templates: fromDocument(document) as string[] } : {};
}
