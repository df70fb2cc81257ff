// The store in a database: its parts, and the settings that all nodes share.

import { UniqueConstraintViolationException } from '@mikro-orm/core';
import { configIncomplete } from '../../domain/errors/registry-errors.ts';
import type { Cipher } from '../cipher.ts';
import type { SettingStore, Store } from '../store.ts';
import { readRow } from '../store-errors.ts';
import { type OrmOperations, REVISION } from './connection/orm-operations.ts';
import { fromDocument, toDocument } from './entities.ts';
import { ormAccounts } from './parts/orm-accounts.ts';
import { ormApprovals } from './parts/orm-approvals.ts';
import { OrmAudit } from './parts/orm-audit.ts';
import { NO_CIPHER, ormInstances } from './parts/orm-instances.ts';
import { ormLists } from './parts/orm-lists.ts';
import { ormNodes } from './parts/orm-nodes.ts';
import { ormOAuth } from './parts/orm-oauth.ts';
import { ormPrograms } from './parts/orm-programs.ts';
import { ormDefinitions, ormTemplates, ormViews } from './parts/orm-registry.ts';
import { ormSessions } from './parts/orm-sessions.ts';

/** The Store of a database. `kind` and `file`: see Store. Without a cipher it refuses instances with secrets. */
export function ormStore(
  kind: string,
  operations: OrmOperations,
  cipher: Cipher | undefined,
  file?: string,
): Store {
  return {
    kind,
    file,
    templates: ormTemplates(operations),
    instances: ormInstances(operations, cipher),
    accounts: ormAccounts(operations, cipher),
    settings: ormSettings(operations),
    audit: new OrmAudit(operations),
    sessions: ormSessions(operations, cipher),
    lists: ormLists(operations, cipher),
    approvals: ormApprovals(operations),
    nodes: ormNodes(operations),
    programs: ormPrograms(operations),
    oauth: ormOAuth(operations, cipher),
    definitions: ormDefinitions(operations),
    views: ormViews(operations),
    revision: () =>
      operations.run(async (em, { revision }) => {
        const row = await em.findOneOrFail(revision, { name: REVISION });
        return row.counter;
      }),
    rekey: async (onProgress) => {
      if (cipher === undefined) throw configIncomplete(NO_CIPHER);
      const { rekey } = await import('./orm-rekey.ts');
      return rekey(operations, cipher, onProgress);
    },
    serverTimeMs: () => operations.serverTimeMs(),
    ping: () => operations.probe(),
    finishWithin: (withinMs) => operations.finishWithin(withinMs),
    close: () => operations.close(),
  };
}

function ormSettings(operations: OrmOperations): SettingStore {
  return {
    read: (name) =>
      operations.run(async (em, { settings }) => {
        const row = await em.findOne(settings, { name });
        // Written by `exchange`.
        return row === null ? undefined : readRow('settings', name, () => fromDocument(row.value) as string);
      }),
    exchange: (name, before, after) =>
      operations.write(async (em, { settings }) => {
        // Locks an existing row until the end of the transaction.
        await em.nativeUpdate(settings, { name }, { name });
        const row = await em.findOne(settings, { name });
        const stored = row === null ? undefined : readRow('settings', name, () => fromDocument(row.value));
        if (stored !== before) return false;
        try {
          if (after === undefined) await em.nativeDelete(settings, { name });
          else if (row !== null) await em.nativeUpdate(settings, { name }, { value: toDocument(after) });
          else await em.insert(settings, { name, value: toDocument(after) });
          return true;
        } catch (thrown) {
          if (thrown instanceof UniqueConstraintViolationException) return false; // another node inserted it first
          throw thrown;
        }
      }),
    touch: async (name) => {
      await operations.writeAtOnce((em, { settings }) => em.nativeUpdate(settings, { name }, { name }));
    },
  };
}
