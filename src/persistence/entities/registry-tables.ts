// The tables of the registry: templates, instances, tombstones, and the revision that counts their changes.

import { defineEntity } from '@mikro-orm/core';
import type { Columns } from './columns.ts';

/** Settings that differ from the defaults. */
export function templateTable({ id, document, counter }: Columns) {
  return defineEntity({
    name: 'Template',
    tableName: 'templates',
    properties: {
      name: id(128).primary(),
      loadBalancer: document(),
      /** Number of the revision that brought it: lists are in this order. */
      position: counter(),
    },
  });
}

/** What is looked up, or shown in the lists of a database tool, is a column; the rest is documents. */
export function instanceTable({ id, document, number, counter, time }: Columns) {
  return defineEntity({
    name: 'Instance',
    tableName: 'instances',
    properties: {
      template: id(128).primary(),
      id: id(128).primary(),
      serverId: id(260).unique(),
      position: counter(),
      transport: id(16),
      weight: number(),
      source: id(16),
      nodeId: id(255).nullable(),
      fingerprint: id(128).nullable(),
      /** `endpoint`, `command`, `args`, `workingDir`, `force`, `container`. */
      target: document(),
      /** Sealed by the cipher; null when there is none. */
      env: document().nullable(),
      headers: document().nullable(),
      metadata: document(),
      createdAt: time(),
      updatedAt: time(),
    },
  });
}

/** Entries of the registry file, and what sync found, that were deleted through the API. */
export function tombstoneTable({ id }: Columns) {
  return defineEntity({
    name: 'Tombstone',
    tableName: 'tombstones',
    properties: {
      template: id(128).primary(),
      id: id(128).primary(),
      fingerprint: id(128),
    },
  });
}

/** One row that counts the changes of registry and accounts. Every change updates it first: so writers of all nodes take turns. */
export function revisionTable({ id, counter }: Columns) {
  return defineEntity({
    name: 'Revision',
    tableName: 'revision',
    properties: {
      name: id(16).primary(),
      counter: counter(),
    },
  });
}
