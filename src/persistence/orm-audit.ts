// The audit log on a database: changes in one table, calls of tools in another, so that each is read and trimmed by its primary
// key. A list merges the two.

import type { SqlEntityManager } from '@mikro-orm/sql';
import { type AuditEntry, type AuditedCall, type AuditFilter, CALL_ACTION } from '../domain/audit.ts';
import type { CallOutcome } from '../domain/call-report.ts';
import { hasCode } from '../domain/errors.ts';
import { type AuditCallRow, type AuditRow, fromDocument, type Tables, toDocument } from './entities.ts';
import type { OrmSession } from './orm-session.ts';
import type { AuditBounds, AuditPage, AuditStore } from './store.ts';

/** Entries written by one operation: one statement for a table where the database takes several rows at once. */
const BATCH = 500;

export class OrmAudit implements AuditStore {
  readonly #session: OrmSession;

  constructor(session: OrmSession) {
    this.#session = session;
  }

  /** Each batch is an operation of its own: the time limit of one operation does not limit the list, and others run in between. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += BATCH)
      await this.#appendBatch(entries.slice(start, start + BATCH));
  }

  async #appendBatch(batch: readonly AuditEntry[]): Promise<void> {
    try {
      await this.#session.write((em, tables) => this.#insert(em, tables, batch, new Set()));
    } catch (thrown) {
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      // A batch whose answer was lost is written again, and some of it is there already.
      await this.#session.write(async (em, tables) =>
        this.#insert(em, tables, batch, await knownIds(em, tables, batch)),
      );
    }
  }

  async #insert(
    em: SqlEntityManager,
    { audit, auditCalls }: Tables,
    batch: readonly AuditEntry[],
    known: ReadonlySet<string>,
  ): Promise<void> {
    const isMany = this.#session.database.insertsRows;
    const missing = batch.filter(({ id }) => !known.has(id));
    const changes = missing.filter(({ call }) => call === undefined).map(rowOfChange);
    const calls = missing.flatMap((entry) =>
      entry.call === undefined ? [] : [rowOfCall(entry, entry.call)],
    );
    if (isMany && changes.length > 0) await em.insertMany(audit, changes);
    if (isMany && calls.length > 0) await insertCalls(em, calls);
    if (isMany) return;
    for (const row of changes) await em.insert(audit, row);
    for (const row of calls) await em.insert(auditCalls, row);
  }

  list({ limit, before, from, filter = {} }: AuditPage): Promise<AuditEntry[]> {
    const { actor, action, status, template, tool, outcome } = filter;
    const isOfCalls = template !== undefined || tool !== undefined || outcome !== undefined;
    const ids = {
      ...(before === undefined ? {} : { $lt: before }),
      ...(from === undefined ? {} : { $gte: from }),
    };
    const common = {
      ...(Object.keys(ids).length === 0 ? {} : { id: ids }),
      ...(actor === undefined ? {} : { $or: [{ actor }, { actorName: actor }] }),
      ...(status === undefined ? {} : { status }),
    };
    const page = { orderBy: { id: 'desc' }, limit, disableIdentityMap: true } as const;
    return this.#session.run(async (em, { audit, auditCalls }) => {
      const changes =
        isOfCalls || action === CALL_ACTION
          ? []
          : await em.findAll(audit, {
              where: { ...common, ...(action === undefined ? {} : { action }) },
              ...page,
            });
      const calls =
        action === undefined || action === CALL_ACTION
          ? await em.findAll(auditCalls, {
              where: { ...common, ...ofCalls({ template, tool, outcome }) },
              ...page,
            })
          : [];
      const entries = [...changes.map(changeOf), ...calls.map(callOf)];
      return entries.sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit);
    });
  }

  async trim({ changes, calls, from }: AuditBounds): Promise<void> {
    await this.#session.write(async (em, { audit }) => {
      const [over] = await em.findAll(audit, firstOver(changes));
      for (const id of expired(over?.id, from)) await em.nativeDelete(audit, { id });
    });
    await this.#session.write(async (em, { auditCalls }) => {
      const [over] = await em.findAll(auditCalls, firstOver(calls));
      for (const id of expired(over?.id, from)) await em.nativeDelete(auditCalls, { id });
    });
  }
}

/** One statement that is made here: `insertMany` takes twice the time for each row. */
async function insertCalls(
  em: SqlEntityManager,
  rows: readonly ReturnType<typeof rowOfCall>[],
): Promise<void> {
  const platform = em.getPlatform();
  const columns = CALL_COLUMNS.map(([, column]) => platform.quoteIdentifier(column)).join(', ');
  const row = `(${CALL_COLUMNS.map(() => '?').join(', ')})`;
  const values = rows.map(() => row).join(', ');
  const parameters = rows.flatMap((each) => CALL_COLUMNS.map(([property]) => each[property]));
  const statement = `insert into ${platform.quoteIdentifier('audit_calls')} (${columns}) values ${values}`;
  await em.execute(statement, parameters, 'run');
}

/** Names of the properties of a row, and of its columns. */
const CALL_COLUMNS = [
  ['id', 'id'],
  ['at', 'at'],
  ['actor', 'actor'],
  ['actorName', 'actor_name'],
  ['template', 'template'],
  ['tool', 'tool'],
  ['outcome', 'outcome'],
  ['status', 'status'],
  ['details', 'details'],
] as const satisfies readonly (readonly [keyof AuditCallRow, string])[];

/** The newest entry that is not kept. */
function firstOver(keep: number) {
  return {
    orderBy: { id: 'desc' },
    offset: keep,
    limit: 1,
    fields: ['id'],
    disableIdentityMap: true,
  } as const;
}

function expired(over: string | undefined, from: string | undefined): readonly object[] {
  return [...(over === undefined ? [] : [{ $lte: over }]), ...(from === undefined ? [] : [{ $lt: from }])];
}

function ofCalls(
  fields: Pick<AuditFilter, 'template' | 'tool' | 'outcome'>,
): Partial<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function knownIds(
  em: SqlEntityManager,
  { audit, auditCalls }: Tables,
  batch: readonly AuditEntry[],
): Promise<ReadonlySet<string>> {
  const query = {
    where: { id: { $in: batch.map(({ id }) => id) } },
    fields: ['id'],
    disableIdentityMap: true,
  } as const;
  const found = [...(await em.findAll(audit, query)), ...(await em.findAll(auditCalls, query))];
  return new Set(found.map(({ id }) => id));
}

/** The texts fit: AuditLog cuts them to LIMITS.auditTextUnits. */
export function rowOfChange({ id, at, actor, actorName, action, subject, status, ...more }: AuditEntry) {
  return {
    ...{ id, at: new Date(at), actor, actorName, action, subject, status },
    address: more.address ?? null,
    requestId: more.requestId ?? null,
  } satisfies AuditRow;
}

export function changeOf(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    at: row.at.toISOString(),
    actor: row.actor,
    // Oracle stores an empty text as null.
    actorName: row.actorName ?? '',
    action: row.action,
    subject: row.subject ?? '',
    status: row.status,
    ...(row.address ? { address: row.address } : {}),
    ...(row.requestId ? { requestId: row.requestId } : {}),
  };
}

/** What no query reads of a call. */
type Details = Pick<AuditEntry, 'subject' | 'address' | 'requestId'> & {
  readonly call: Omit<AuditedCall, 'template' | 'tool' | 'outcome'>;
};

function rowOfCall({ id, at, actor, actorName, status, ...entry }: AuditEntry, audited: AuditedCall) {
  const { template, tool, outcome, ...call } = audited;
  const { subject, address, requestId } = entry;
  const details = toDocument({ subject, address, requestId, call });
  return {
    id,
    at: new Date(at),
    actor,
    actorName,
    template,
    tool,
    outcome,
    status,
    details,
  } satisfies AuditCallRow;
}

/** The casts are the types that `rowOfCall` wrote. */
function callOf(row: AuditCallRow): AuditEntry {
  const { call, ...details } = fromDocument(row.details) as Details;
  const { id, actor, status, actorName, template, tool } = row;
  const outcome = row.outcome as CallOutcome;
  return {
    ...{ id, at: row.at.toISOString(), actor, actorName: actorName ?? '', action: CALL_ACTION, status },
    ...details,
    call: { template: template ?? '', tool: tool ?? '', outcome, ...call },
  };
}
