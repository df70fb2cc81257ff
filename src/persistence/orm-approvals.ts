// The approved definitions of tools in a database. Source: ADR 238.

import { createHash } from 'node:crypto';
import type { Approval } from '../domain/approval.ts';
import { fromDocument, toDocument } from './entities.ts';
import type { OrmSession } from './orm-session.ts';
import type { ApprovalStore } from './store.ts';

export function ormApprovals(session: OrmSession): ApprovalStore {
  return {
    list: () =>
      session.run(async (em, { approvals }) => {
        const rows = await em.createQueryBuilder(approvals).orderBy({ key: 'asc' }).execute('all');
        return rows.map(({ value }) => fromDocument(value) as Approval);
      }),
    save: (saved) =>
      session.change(async (em, { approvals }, revision) => {
        const rows = saved.map((approval) => ({
          ...{ key: keyOf(approval), scope: approval.scope, value: toDocument(approval) },
        }));
        await em.nativeDelete(approvals, { key: { $in: rows.map(({ key }) => key) } });
        await session.insertRows(em, approvals, rows);
        return revision;
      }),
    deleteOf: async (scope) => {
      const isThere = await session.run((em, { approvals }) => em.count(approvals, { scope }));
      if (isThere === 0) return undefined;
      return session.change(async (em, { approvals }, revision) => {
        await em.nativeDelete(approvals, { scope });
        return revision;
      });
    },
  };
}

function keyOf({ scope, tool }: Approval): string {
  return createHash('sha256').update(`${scope}\0${tool}`).digest('hex');
}
