// The tables of accounts and of what belongs to the installation: users, API keys, settings, the audit log.

import { defineEntity } from '@mikro-orm/core';
import type { Columns } from './columns.ts';

/** Users. */
export function userTable({ id, text, document, counter, flag, time }: Columns) {
  return defineEntity({
    name: 'User',
    tableName: 'users',
    properties: {
      id: id(64).primary(),
      username: id(64),
      /** The name in lower case: `Ada` and `ada` are one user. */
      usernameKey: id(64).unique(),
      position: counter(),
      email: text(),
      role: id(16),
      templates: document().nullable(),
      isActive: flag(),
      passwordHash: id(128),
      credentialsChangedAt: time(),
      createdAt: time(),
      updatedAt: time(),
    },
  });
}

/** API keys, without their secrets. */
export function apiKeyTable({ id, text, document, counter, time }: Columns) {
  return defineEntity({
    name: 'ApiKey',
    tableName: 'api_keys',
    properties: {
      id: id(64).primary(),
      name: text(),
      position: counter(),
      permissions: document(),
      templates: document().nullable(),
      expiresAt: time().nullable(),
      ownerId: id(64).nullable().index(),
      secretHash: id(128),
      createdAt: time(),
      lastUsedAt: time().nullable(),
    },
  });
}

/** Single values of the whole installation. */
export function settingTable({ id, document }: Columns) {
  return defineEntity({
    name: 'Setting',
    tableName: 'settings',
    properties: {
      name: id(128).primary(),
      value: document(),
    },
  });
}

/** The audit log. Its ids sort by time. */
export function auditTable({ id, text, number, time }: Columns) {
  return defineEntity({
    name: 'AuditEntry',
    tableName: 'audit_log',
    properties: {
      id: id(64).primary(),
      at: time(),
      actor: text(),
      actorName: text().nullable(),
      action: text(),
      subject: text().nullable(),
      status: number(),
      address: text().nullable(),
      requestId: text().nullable(),
    },
  });
}
