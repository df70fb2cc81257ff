// The audit log on a database: changes in one table, calls of tools in another, so that each is read and trimmed by its primary
// key. A list merges the two.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EntityName } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type AuditEntry, type AuditedCall, CALL_ACTION } from '../domain/audit.ts';
import type { CallOutcome } from '../domain/call-report.ts';
import { hasCode } from '../domain/errors.ts';
import type { Rows } from './database.ts';
import { type AuditCallRow, type AuditRow, fromDocument, type Tables, toDocument } from './entities.ts';
import type { OrmSession, Work } from './orm-session.ts';
import type { AuditBounds, AuditPage, AuditStore } from './store.ts';

/** Entries written by one operation: one statement for a table where the database takes several rows at once. */
const BATCH = 500;
/** Rows that one operation looks through: about 4 ms of a file. */
const WINDOW = 5_000;

export class OrmAudit implements AuditStore {
  readonly #session: OrmSession;
  /** Of the present connection to a file. */
  #inserter: { readonly client: unknown; readonly insert: (rows: Rows) => void } | undefined;

  constructor(session: OrmSession) {
    this.#session = session;
  }

  /** Each batch is an operation of its own: the time limit of one operation does not limit the list, and others run in between. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += BATCH)
      await this.#appendBatch(entries.slice(start, start + BATCH));
  }

  /** Changes are on the disk when this resolves. */
  async #appendBatch(batch: readonly AuditEntry[]): Promise<void> {
    const isOfCalls = batch.every(({ call }) => call !== undefined);
    const write = (work: Work<void>) =>
      isOfCalls ? this.#session.writeBehind(work) : this.#session.write(work);
    try {
      await write((em, tables) => this.#insert(em, tables, batch, new Set()));
    } catch (thrown) {
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      // A batch whose answer was lost is written again, and some of it is there already.
      await write(async (em, tables) => this.#insert(em, tables, batch, await knownIds(em, tables, batch)));
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
    const calls = missing.flatMap(rowsOfCall);
    if (isMany && changes.length > 0) await em.insertMany(audit, changes);
    if (isMany && calls.length > 0) await this.#insertCalls(em, calls);
    if (isMany) return;
    for (const row of changes) await em.insert(audit, row);
    for (const row of calls) await em.insert(auditCalls, row);
  }

  /** One statement that is made here, if not by the driver: `insertMany` takes twice the time for each row. */
  async #insertCalls(em: SqlEntityManager, rows: readonly NewCallRow[]): Promise<void> {
    const { rowInserter } = this.#session.database;
    if (rowInserter !== undefined) {
      const client = await em.getConnection().getNativeClient();
      const present = this.#inserter?.client === client ? this.#inserter : undefined;
      const inserter = present ?? { client, insert: rowInserter(client) };
      this.#inserter = inserter;
      const columns = CALL_COLUMNS.map(([, column]) => column);
      inserter.insert({ table: CALLS, columns, values: rows.map(valuesOf) });
      return;
    }
    const platform = em.getPlatform();
    const columns = CALL_COLUMNS.map(([, column]) => platform.quoteIdentifier(column)).join(', ');
    const row = `(${CALL_COLUMNS.map(() => '?').join(', ')})`;
    const values = rows.map(() => row).join(', ');
    const parameters = rows.flatMap((each) => CALL_COLUMNS.map(([property]) => each[property]));
    const statement = `insert into ${platform.quoteIdentifier(CALLS)} (${columns}) values ${values}`;
    await em.execute(statement, parameters, 'run');
  }

  async list({ limit, before, from, filter = {} }: AuditPage): Promise<AuditEntry[]> {
    const { actor, action, status, template, tool, outcome } = filter;
    const isOfCalls = template !== undefined || tool !== undefined || outcome !== undefined;
    const common = {
      ...(actor === undefined ? {} : { $or: [{ actor }, { actorName: actor }] }),
      ...(status === undefined ? {} : { status }),
    };
    const ofChanges = { ...common, ...(action === undefined ? {} : { action }) };
    const ofCalls = { ...common, ...withValue({ template, tool, outcome }) };
    const page = { limit, before, from };
    const changes =
      isOfCalls || action === CALL_ACTION
        ? []
        : await this.#find('audit', page, (em, { audit }, where, options) =>
            em.findAll(audit, { where: { ...ofChanges, ...where }, ...options }),
          );
    const calls =
      action === undefined || action === CALL_ACTION
        ? await this.#find('auditCalls', page, (em, { auditCalls }, where, options) =>
            em.findAll(auditCalls, { where: { ...ofCalls, ...where }, ...options }),
          )
        : [];
    const entries = [...changes.map(changeOf), ...calls.map(callOf)];
    return entries.sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit);
  }

  /**
   * Looks through a table in windows of its ids, newest first: there is no index but that of the ids, and a query that matches
   * little would read the whole table, for a file in one turn of the event loop.
   */
  async #find<Row>(
    table: AuditTable,
    { limit, before, from }: Omit<AuditPage, 'filter'>,
    query: Query<Row>,
  ): Promise<Row[]> {
    const found: Row[] = [];
    for (let top = before; ; ) {
      const ids = between(from, top);
      const rows = await this.#session.run(async (em, tables) => {
        const [bottom] = await em.findAll(idsOf(tables, table), { where: ids, ...nth(WINDOW, 'desc') });
        top = bottom?.id;
        return query(em, tables, between(top ?? from, before), { ...NEWEST, limit: limit - found.length });
      });
      found.push(...rows);
      if (top === undefined || found.length === limit) return found;
      before = top;
      await nextTurn();
    }
  }

  async trim({ changes, calls, from }: AuditBounds): Promise<void> {
    await this.#trim('audit', changes, from);
    await this.#trim('auditCalls', calls, from);
  }

  /** In slices, for the same reason. It counts from the old end: a count of all rows is cheaper than walking over all that are kept. */
  async #trim(table: AuditTable, keep: number, from: string | undefined): Promise<void> {
    const over = await this.#session.run(async (em, tables) => {
      const surplus = (await em.count(idsOf(tables, table))) - keep;
      return surplus <= 0 ? undefined : (await em.findAll(idsOf(tables, table), nth(surplus, 'asc')))[0]?.id;
    });
    const expired = [
      ...(over === undefined ? [] : [{ id: { $lte: over } }]),
      ...(from === undefined ? [] : [{ id: { $lt: from } }]),
    ];
    for (const where of expired) while (await this.#trimSlice(table, where)) await nextTurn();
  }

  /** False when nothing of it is left. */
  #trimSlice(table: AuditTable, where: { readonly id: object }): Promise<boolean> {
    return this.#session.writeBehind(async (em, tables) => {
      const [last] = await em.findAll(idsOf(tables, table), { where, ...nth(BATCH, 'asc') });
      await em.nativeDelete(idsOf(tables, table), last === undefined ? where : { id: { $lte: last.id } });
      return last !== undefined;
    });
  }
}

type AuditTable = 'audit' | 'auditCalls';

/** What both tables have in common. */
function idsOf(tables: Tables, table: AuditTable): EntityName<{ id: string }> {
  const entity: EntityName = tables[table];
  return entity;
}

/** Finds rows of the table that are among those ids. */
type Query<Row> = (
  em: SqlEntityManager,
  tables: Tables,
  where: { readonly id?: object },
  options: typeof NEWEST & { readonly limit: number },
) => Promise<Row[]>;

const NEWEST = { orderBy: { id: 'desc' }, disableIdentityMap: true } as const;

function between(from: string | undefined, before: string | undefined): { readonly id?: object } {
  const id = withValue({ $gte: from, $lt: before });
  return Object.keys(id).length === 0 ? {} : { id };
}

/** The id of the nth row from one end. */
function nth(number: number, order: 'asc' | 'desc') {
  return {
    orderBy: { id: order },
    offset: number - 1,
    limit: 1,
    fields: ['id'],
    disableIdentityMap: true,
  } as const;
}

type NewCallRow = ReturnType<typeof rowOfCall>;

const CALLS = 'audit_calls';

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

/** As SQLite stores them: a time is a number. */
function valuesOf(row: NewCallRow): (string | number)[] {
  return CALL_COLUMNS.map(([property]) => {
    const value = row[property];
    return value instanceof Date ? value.getTime() : value;
  });
}

function withValue(fields: Readonly<Record<string, string | undefined>>): Partial<Record<string, string>> {
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

/** The row of a call; none of a change. */
function rowsOfCall(entry: AuditEntry) {
  return entry.call === undefined ? [] : [rowOfCall(entry, entry.call)];
}

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
