// The audit log on a database: a change is a row of one table, and tool calls that are close in time share a
// row of another. A list merges the two.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { hasCode } from '../../../domain/errors/errors.ts';
import {
  type AuditEntry,
  BLOCK_MS,
  CALL_ACTION,
  type CallBlock,
  CallBlockWriter,
  type CallEntry,
  callsOfBlock,
  idAt,
  isMatch,
  mostExpired,
  newestFirst,
  timeOfId,
} from '../../../domain/events/audit-entries.ts';
import { definedFields } from '../../../domain/json/json.ts';
import type { AuditBounds, AuditPage, AuditStore, InTurn } from '../../store.ts';
import { readRow } from '../../store-errors.ts';
import type { OrmOperations, Work } from '../connection/orm-operations.ts';
import {
  CALL_BLOCKS,
  type Columns,
  columnsOf,
  documentOf,
  recordOf,
  type TableRow,
  type Tables,
  toDocument,
} from '../entities.ts';
import { TableRows } from './table-rows.ts';

/** The most rows that one operation deletes. */
const MAX_DELETED = 500;
/** The most changes that one operation reads: about 4 ms on a file. */
const MAX_READ = 5_000;
/** The approximate number of calls that one operation reads or deletes, and the number of their rows. */
const CALL_WINDOW = 2_500;
const BLOCK_WINDOW = 500;

/** The AuditStore of a database. */
export class OrmAudit implements AuditStore {
  readonly #operations: OrmOperations;

  constructor(operations: OrmOperations) {
    this.#operations = operations;
  }

  /** Appends the changes, which are on the disk when this resolves. */
  async append(changes: readonly AuditEntry[]): Promise<void> {
    try {
      await this.#operations.write((em, { audit }) => this.#insert(em, audit, changes));
    } catch (thrown) {
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      // Changes whose answer was lost are written again, although some of them may be stored.
      await this.#operations.write(async (em, { audit }) => {
        const where = { id: { $in: changes.map(({ id }) => id) } };
        const known = await em.findAll(audit, { where, fields: ['id'] });
        const ids = new Set(known.map(({ id }) => id));
        const missing = changes.filter(({ id }) => !ids.has(id));
        await this.#insert(em, audit, missing);
      });
    }
  }

  async #insert(em: SqlEntityManager, audit: Tables['audit'], changes: readonly AuditEntry[]): Promise<void> {
    await this.#operations.insertRows(em, audit, changes.map(rowOfChange));
  }

  /** Appends a block. One whose answer was lost is written again, although it may be stored. */
  async appendCalls({ id, calls, entries }: CallBlock): Promise<void> {
    const row = { id, calls, entries: documentOf(entries) };
    await this.#operations.writeWithoutSync(
      (em, { callBlocks }) => new TableRows(em, callBlocks, this.#operations).insert(row),
      'statements',
    );
  }

  async list(page: AuditPage, inTurn: InTurn = inNextTurn): Promise<AuditEntry[]> {
    const { action, template, tool, view, outcome } = page;
    const isOfCalls = action === CALL_ACTION || (template ?? tool ?? view ?? outcome) !== undefined;
    const changes = isOfCalls ? [] : await this.#findChanges(page, inTurn);
    const calls = action === undefined || action === CALL_ACTION ? await this.#findCalls(page, inTurn) : [];
    return [...changes, ...calls].sort(newestFirst).slice(0, page.limit);
  }

  /**
   * Reads the table in windows of its ids, newest first: the ids are the only index, and a query with few
   * matches would read the whole table, on a file in one turn of the event loop.
   */
  async #findChanges(
    { limit, before, from, actor, action, status }: AuditPage,
    inTurn: InTurn,
  ): Promise<AuditEntry[]> {
    const matching = {
      ...(actor === undefined ? {} : { $or: [{ actor }, { actorName: actor }] }),
      ...definedFields({ action, status }),
    };
    const found: AuditEntry[] = [];
    for (let top = before; ; ) {
      const below = top;
      const read: Work<TableRow<'audit'>[]> = async (em, { audit }) => {
        const [bottom] = await em.findAll(audit, { where: between(from, below), ...nth(MAX_READ, 'desc') });
        top = bottom?.id;
        const where = { ...matching, ...between(top ?? from, below) };
        return em.findAll(audit, { where, ...NEWEST, limit: limit - found.length });
      };
      const rows = await inTurn(() => this.#operations.run(read));
      found.push(...rows.map(changeOf));
      if (top === undefined || found.length === limit) return found;
    }
  }

  /**
   * Reads blocks in windows, newest first. Blocks of several nodes overlap, so an entry is in the result only
   * when it is newer than the last block that was read.
   */
  async #findCalls({ limit, before, from, ...filter }: AuditPage, inTurn: InTurn): Promise<AuditEntry[]> {
    const found: AuditEntry[] = [];
    const texts = [filter.actor, filter.template, filter.tool, filter.view].flatMap((text) =>
      text === undefined ? [] : [toDocument(text)],
    );
    // The block of an entry before that id may end after the id.
    for (let top = before === undefined ? undefined : idAt(timeOfId(before) + BLOCK_MS + 1); ; ) {
      const ids = between(from, top);
      const blocks = await inTurn(() => this.#operations.run((em, tables) => newestBlocks(em, tables, ids)));
      const matching = blocks.filter(({ entries }) => texts.every((text) => entries.includes(text)));
      for (const entry of matching.flatMap(callsOf))
        if (entry.id < (before ?? LAST) && entry.id >= (from ?? '') && isMatch(entry, filter))
          found.push(entry);
      found.sort(newestFirst);
      top = blocks.at(-1)?.id;
      const last = found[limit - 1];
      if (top === undefined || (last !== undefined && last.id > top)) return found.slice(0, limit);
    }
  }

  async trim({ changes, calls, from }: AuditBounds): Promise<void> {
    await this.#trimChanges(changes);
    await this.#trimCalls(calls);
    if (from === undefined) return;
    await this.#expireChanges(from);
    await this.#expireCalls(from);
  }

  /**
   * Deletes the oldest changes, in slices, for the same reason as the windows. It finds the boundary from the old
   * end: a count of all rows is cheaper than a walk over all kept rows.
   */
  async #trimChanges(keep: number): Promise<void> {
    await this.#deleteOldest((stored) => stored - keep, {});
  }

  async #expireChanges(from: string): Promise<void> {
    await this.#deleteOldest(mostExpired, { $lt: from });
  }

  /** Deletes matching rows among the oldest changes; `number` makes their number of the number of all. */
  async #deleteOldest(number: (stored: number) => number, ids: { readonly $lt?: string }): Promise<void> {
    const last = await this.#operations.run(async (em, { audit }) => {
      const most = number(await em.count(audit));
      return most <= 0 ? undefined : (await em.findAll(audit, nth(most, 'asc')))[0]?.id;
    });
    if (last === undefined) return;
    while (await this.#trimSlice({ id: { ...ids, $lte: last } })) await nextTurn();
  }

  #trimSlice(where: { readonly id: object }): Promise<boolean> {
    return this.#operations.writeWithoutSync(async (em, { audit }) => {
      const [last] = await em.findAll(audit, { where, ...nth(MAX_DELETED, 'asc') });
      await em.nativeDelete(audit, last === undefined ? where : { id: { $lte: last.id } });
      return last !== undefined;
    });
  }

  /** Deletes whole blocks, so that the block at the boundary remains. Counts before each slice: other nodes may trim, too. */
  async #trimCalls(keep: number): Promise<void> {
    const trimSlice = async (em: SqlEntityManager, tables: Tables) =>
      deleteBlocks(em, tables, (await countCalls(em, tables)) - keep, {});
    while ((await this.#operations.writeWithoutSync(trimSlice)) > 0) await nextTurn();
  }

  async #expireCalls(from: string): Promise<void> {
    const ids = { id: { $lt: from } };
    let left = mostExpired(await this.#operations.run(countCalls));
    for (let deleted = left; deleted > 0; left -= deleted) {
      deleted = await this.#operations.writeWithoutSync((em, tables) => deleteBlocks(em, tables, left, ids));
      await nextTurn();
    }
    if (left > 0)
      await this.#operations.writeWithoutSync((em, tables) => shortenBlock(em, tables, left, ids));
  }
}

const LAST = '~';

/** Reads each part in its own turn of the event loop: a file is read within one. */
const inNextTurn: InTurn = async (part) => {
  await nextTurn();
  return part();
};

const NEWEST = { orderBy: { id: 'desc' } } as const;

function between(from: string | undefined, before: string | undefined): { readonly id?: object } {
  const id = definedFields({ $gte: from, $lt: before });
  return Object.keys(id).length === 0 ? {} : { id };
}

function nth(number: number, order: 'asc' | 'desc') {
  return { orderBy: { id: order }, offset: number - 1, limit: 1, fields: ['id'] } as const;
}

/** The row of a change. The texts fit: AuditLog cuts them to LIMITS.auditTextUnits. */
function rowOfChange({ call: _, ...change }: AuditEntry): Columns<TableRow<'audit'>> {
  return columnsOf({ address: undefined, requestId: undefined, suppressed: undefined, ...change });
}

/** The change in a row. Oracle stores an empty text as null. */
function changeOf(row: TableRow<'audit'>): AuditEntry {
  return { actorName: '', subject: '', ...recordOf<Omit<AuditEntry, 'actorName' | 'subject' | 'call'>>(row) };
}

function callsOf(block: Pick<CallBlock, 'id' | 'entries'>): CallEntry[] {
  return readRow(CALL_BLOCKS, block.id, () => callsOfBlock(block));
}

/** The newest blocks with those ids: about CALL_WINDOW calls. */
async function newestBlocks(
  em: SqlEntityManager,
  { callBlocks }: Tables,
  ids: { readonly id?: object },
): Promise<Pick<CallBlock, 'id' | 'entries'>[]> {
  const last = upTo(CALL_WINDOW, await sizesFrom('desc', em, callBlocks, ids)).at(-1);
  if (last === undefined) return [];
  return em
    .createQueryBuilder(callBlocks)
    .select(['id', 'entries'])
    .where({ $and: [ids, { id: { $gte: last.id } }] })
    .orderBy({ id: 'desc' })
    .execute('all', false);
}

/** The first blocks from one end, as plain rows: making entities takes three times as long. */
function sizesFrom(
  order: 'asc' | 'desc',
  em: SqlEntityManager,
  callBlocks: Tables['callBlocks'],
  ids: { readonly id?: object },
): Promise<Pick<CallBlock, 'id' | 'calls'>[]> {
  const query = em.createQueryBuilder(callBlocks).select(['id', 'calls']).where(ids);
  return query.orderBy({ id: order }).limit(BLOCK_WINDOW).execute('all', false);
}

/** The first blocks that together have this number of calls or slightly more. */
function upTo<Block extends { readonly calls: number }>(most: number, blocks: readonly Block[]): Block[] {
  let before = 0;
  return blocks.filter(({ calls }) => {
    const isWithin = before < most;
    before += calls;
    return isWithin;
  });
}

async function countCalls(em: SqlEntityManager, { callBlocks }: Tables): Promise<number> {
  const total = raw('sum(??) as ??', ['calls', 'total']);
  const row = await em.createQueryBuilder(callBlocks).select(total).execute('get', false);
  return Number(row.total);
}

/**
 * Deletes the oldest blocks with those ids that together have at most this number of calls; never all blocks at once.
 * Resolves with the number of calls.
 */
async function deleteBlocks(
  em: SqlEntityManager,
  { callBlocks }: Tables,
  most: number,
  ids: { readonly id?: object },
): Promise<number> {
  let deleted = 0;
  let last: string | undefined;
  for (const { id, calls } of upTo(CALL_WINDOW, await sizesFrom('asc', em, callBlocks, ids))) {
    if (deleted + calls > most) break;
    deleted += calls;
    last = id;
  }
  if (last !== undefined) await em.nativeDelete(callBlocks, { id: { $lte: last } });
  return deleted;
}

/** Deletes that number of calls from the oldest block with those ids, which has more. */
async function shortenBlock(
  em: SqlEntityManager,
  { callBlocks }: Tables,
  deleted: number,
  ids: { readonly id?: object },
): Promise<void> {
  const [block] = await em.findAll(callBlocks, { where: ids, orderBy: { id: 'asc' }, limit: 1 });
  if (block === undefined || block.calls <= deleted) return;
  const writer = new CallBlockWriter();
  for (const entry of callsOf(block).slice(deleted))
    writer.add(entry, entry, entry.call.digest, entry.call.arguments);
  writer.end();
  const [{ id, calls, entries }] = writer.finished as [CallBlock];
  await em.nativeUpdate(callBlocks, { id }, { calls, entries: documentOf(entries) });
}
