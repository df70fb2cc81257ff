// The audit log on a database.

import type { AuditEntry } from '../domain/account.ts';
import { auditOf, rowOfAudit } from './account-rows.ts';
import type { OrmSession } from './orm-session.ts';
import type { AuditStore } from './store.ts';

/** Entries written by one operation, in one statement where the database takes several rows at once. */
const BATCH = 100;

export class OrmAudit implements AuditStore {
  readonly #session: OrmSession;

  constructor(session: OrmSession) {
    this.#session = session;
  }

  /** Every batch is an operation of its own: a long list has the time it needs, and others have their turn in between. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += BATCH)
      await this.#appendBatch(entries.slice(start, start + BATCH));
  }

  #appendBatch(batch: readonly AuditEntry[]): Promise<void> {
    return this.#session.write(async (em, { audit }) => {
      // A batch whose answer was lost comes again.
      const known = await em.findAll(audit, {
        where: { id: { $in: batch.map(({ id }) => id) } },
        fields: ['id'],
        disableIdentityMap: true,
      });
      const ids = new Set(known.map(({ id }) => id));
      const rows = batch.filter(({ id }) => !ids.has(id)).map(rowOfAudit);
      if (rows.length === 0) return;
      if (this.#session.database.insertsRows) await em.insertMany(audit, rows);
      else for (const row of rows) await em.insert(audit, row);
    });
  }

  list({ limit, before }: { readonly limit: number; readonly before?: string }): Promise<AuditEntry[]> {
    return this.#session.run(async (em, { audit }) => {
      const rows = await em.findAll(audit, {
        where: before === undefined ? {} : { id: { $lt: before } },
        orderBy: { id: 'desc' },
        limit,
        disableIdentityMap: true,
      });
      return rows.map(auditOf);
    });
  }

  trim(keep: number): Promise<void> {
    return this.#session.write(async (em, { audit }) => {
      const [newestToGo] = await em.findAll(audit, {
        orderBy: { id: 'desc' },
        offset: keep,
        limit: 1,
        fields: ['id'],
        disableIdentityMap: true,
      });
      if (newestToGo !== undefined) await em.nativeDelete(audit, { id: { $lte: newestToGo.id } });
    });
  }
}
