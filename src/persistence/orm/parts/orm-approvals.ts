// The approved definitions of tools in a database. Source: ADR 238.

import { hash } from 'node:crypto';
import type { JsonObject } from '../../../domain/json/json.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import { type Approval, withDigests } from '../../../domain/views/approval.ts';
import type { ApprovalStore } from '../../store.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { fromDocument, type TableRow, toDocument } from '../entities.ts';
import { TableRows } from './table-rows.ts';

export function ormApprovals(operations: OrmOperations): ApprovalStore {
  return {
    list: async () => {
      const rows = await operations.run((em, { approvals }) =>
        new TableRows(em, approvals, operations).all(['scope', 'tool', 'digests'], 'key'),
      );
      const listed: Approval[] = [];
      await eachInGroups(rows, ({ scope, tool, digests }) =>
        listed.push({ scope, tool: textIn(tool), digests: fromDocument(digests) as string[] }),
      );
      return listed;
    },
    definitionsOf: async (scope) => {
      const rows = await operations.run((em, { approvals }) => em.findAll(approvals, { where: { scope } }));
      const definitions = new Map<string, JsonObject>();
      await eachInGroups(rows, ({ tool, definition }) =>
        definitions.set(textIn(tool), fromDocument(definition) as JsonObject),
      );
      return definitions;
    },
    save: (saved) =>
      operations.change(async (em, { approvals }, revision) => {
        const keys = saved.map(approvalKey);
        const stored: Pick<TableRow<'approvals'>, 'key' | 'digests'>[] = await em
          .createQueryBuilder(approvals)
          .select(['key', 'digests'])
          .where({ key: { $in: keys } })
          .execute('all');
        const before = new Map(stored.map(({ key, digests }) => [key, fromDocument(digests) as string[]]));
        const rows = saved.map((approval, n) => ({
          key: keys[n] as string,
          scope: approval.scope,
          tool: toDocument(approval.tool),
          digests: toDocument(withDigests(before.get(keys[n] as string) ?? [], approval.digests)),
          definition: toDocument(approval.definition),
        }));
        await em.nativeDelete(approvals, { key: { $in: keys } });
        await operations.insertRows(em, approvals, rows);
        return revision;
      }),
    deleteOf: async (scope) => {
      const isThere = await operations.run((em, { approvals }) => em.count(approvals, { scope }));
      if (isThere === 0) return undefined;
      return operations.change(async (em, { approvals }, revision) => {
        await em.nativeDelete(approvals, { scope });
        return revision;
      });
    },
  };
}

function textIn(document: string): string {
  return String(fromDocument(document));
}

function approvalKey({ scope, tool }: Approval): string {
  return hash('sha256', `${scope}\0${tool}`, 'hex');
}
