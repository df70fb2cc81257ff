// The audit log: HTTP records entries, which are buffered and written in batches, so that recording costs a request little. A
// crash may lose the entries of the last FLUSH_MS; a stop loses none that the database accepts. Source: ADR 77, 82.

import { hash, randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import {
  type AuditEntry,
  auditText,
  CallBlockWriter,
  idAt,
  type NewCall,
  type NewEntry,
} from '../../domain/events/audit-entries.ts';
import { definedFields, type JsonFields, JsonText } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { cutText } from '../../domain/text.ts';
import { type Clock, clockDoubt, DAY_MS, HOUR_MS, isoTimes } from '../../domain/time/clock.ts';
import { SerialQueue } from '../../domain/time/serial-queue.ts';
import { type AuditPage, type AuditStore, MAX_ROWS, type Store } from '../../persistence/store.ts';
import { Flusher } from '../flusher.ts';
import { SuppressedRequests } from './suppressed-requests.ts';

/** Entries are written at this age, or when a whole block of calls waits. */
const FLUSH_MS = 1_000;
/** The most changes, and the most calls, that wait while the database is unavailable; further ones are counted and dropped. */
const MAX_BUFFERED = 10_000;
/**
 * The most kept changes, the newest ones. A trim counts all entries: it runs after the larger of this many entries and this share
 * of the kept calls, and once an hour, which is also when entries are deleted for their age.
 */
const MAX_CHANGES = 100_000;
const TRIM_EVERY_ENTRIES = 5_000;
const TRIM_EVERY_SHARE = 0.1;
const TRIM_MS = HOUR_MS;
/** Bytes of arguments that are digested in one turn of the event loop: about 1 ms. */
const DIGESTED_BYTES = 1_000_000;
/** The most bytes of arguments that wait for later turns. A call beyond has as many digested at once as it brings. */
const MAX_UNDIGESTED_BYTES = 16_000_000;

interface AuditOptions {
  readonly store: AuditStore;
  readonly log: Pick<Logger, 'warn'>;
  readonly clock: Clock;
  /** The clock of the database (Store.serverTimeMs). Default: it has none of its own. */
  readonly serverTimeMs?: Store['serverTimeMs'];
  readonly settings: Config['audit'];
}

interface Undigested extends Stamp {
  readonly entry: NewCall;
  readonly source: Uint8Array | string | undefined;
}

type Stamp = Pick<AuditEntry, 'id' | 'at'>;

/** Recording neither fails nor delays a request. */
export class AuditLog {
  readonly #options: AuditOptions;
  readonly #trimEvery: number;
  readonly #nextId: () => string;
  readonly #isoTime = isoTimes();
  /**
   * The windows of all pages: one takes some 50 ms of the event loop, and many at once would hold it for seconds. A search over
   * millions of entries has thousands, between which others have their turns.
   */
  readonly #reads = new SerialQueue();
  readonly #flusher: Flusher;
  #undigested: Undigested[] = [];
  #undigestedBytes = 0;
  #changes: AuditEntry[] = [];
  readonly #suppressed = new SuppressedRequests();
  readonly #calls = new CallBlockWriter();
  /** Calls that are not written yet, digested or not. */
  #waitingCalls = 0;
  #dropped = 0;
  #sinceTrim = 0;
  readonly #now: Clock['now'];
  /** The time of the next hourly trim, by the monotonic clock. */
  #nextHourlyMs: number;
  /** The reason why the wall clock may be wrong, if any; asked at each hourly trim. */
  readonly #doubt: () => Promise<string | undefined>;
  #isClosed = false;

  constructor(options: AuditOptions) {
    const { now, wall } = options.clock;
    this.#options = options;
    this.#flusher = new Flusher(FLUSH_MS, () => this.#write(), options.clock);
    this.#trimEvery = Math.max(TRIM_EVERY_ENTRIES, options.settings.keptCalls * TRIM_EVERY_SHARE);
    this.#nextId = timeOrderedIds(wall);
    this.#now = now;
    this.#nextHourlyMs = this.#now() + TRIM_MS;
    this.#doubt = clockDoubt(options.clock, options.serverTimeMs ?? (async () => undefined));
  }

  /** False: `recordCall` does nothing. */
  get recordsCalls(): boolean {
    return this.#options.settings.recordsCalls;
  }

  /** Records a change or a login, with the number of suppressed requests before it. */
  record(entry: NewEntry): void {
    if (this.#isClosed || this.#changes.length >= MAX_BUFFERED) {
      this.#drop();
      return;
    }
    this.#addChanges(this.#suppressed.takeWith(entry));
    this.#flusher.later();
  }

  /**
   * Counts a request that gets no entry, of an unknown caller or one too many of a caller: the next entry of this action and
   * address has the number, or one at close.
   */
  suppress(entry: NewEntry): void {
    this.#suppressed.add(entry);
  }

  /** Records a call. The digest of its arguments, if configured, is made after this turn of the event loop. */
  recordCall(entry: NewCall, callArguments: JsonFields[string]): void {
    if (!this.#options.settings.recordsCalls) return;
    if (this.#isClosed || this.#waitingCalls >= MAX_BUFFERED) {
      this.#drop();
      return;
    }
    this.#waitingCalls += 1;
    const { id, at } = this.#stamp();
    const { callArguments: recorded } = this.#options.settings;
    const source = recorded === 'none' ? undefined : sourceOf(callArguments);
    this.#undigested.push({ id, at, entry, source });
    this.#undigestedBytes += source?.length ?? 0;
    if (this.#undigested.length === 1) setImmediate(() => this.#digestInTurns());
    if (this.#undigestedBytes > MAX_UNDIGESTED_BYTES) this.#digest(source?.length);
  }

  /**
   * The entries of a page, newest first, including all entries that were recorded before. Throws when `signal` is aborted before
   * the last window.
   */
  async list(page: AuditPage, signal?: AbortSignal): Promise<AuditEntry[]> {
    this.#digest();
    this.#calls.end();
    await this.#flusher.beforeReading();
    return this.#options.store.list(page, (read) =>
      this.#reads.take(async () => {
        signal?.throwIfAborted();
        await nextTurn(); // a file is read, and its window searched, in one turn
        return read();
      }),
    );
  }

  /**
   * Writes all waiting entries; bounded in time. A warning says how many could not be written and are lost;
   * another one, that a request which took longer than the stop has no entry.
   */
  async close(): Promise<void> {
    this.#addChanges(this.#suppressed.takeAll());
    this.#digest();
    this.#calls.end();
    await this.#flusher.close();
    this.#isClosed = true;
    const lost = this.#changes.length + this.#waitingCalls + this.#dropped;
    if (lost > 0) this.#options.log.warn({ entries: lost }, 'entries of the audit log were lost');
  }

  #addChanges(entries: readonly NewEntry[]): void {
    for (const { suppressed, ...entry } of entries)
      this.#changes.push({ ...entryOf(entry, this.#stamp()), ...definedFields({ suppressed }) });
  }

  #stamp(): Stamp {
    return { id: this.#nextId(), at: this.#isoTime(this.#options.clock.wall()) };
  }

  #digestInTurns(): void {
    this.#digest(DIGESTED_BYTES);
    if (this.#undigested.length > 0) setImmediate(() => this.#digestInTurns());
  }

  /** Digests the oldest arguments, at least this number of bytes. Default: all. */
  #digest(leastBytes = Number.POSITIVE_INFINITY): void {
    const isStored = this.#options.settings.callArguments === 'full';
    const storedText = (source: Undigested['source']) =>
      source && isStored ? beginningOf(source) : undefined;
    let bytes = 0;
    let done = 0;
    for (const next of this.#undigested) {
      if (bytes >= leastBytes) break;
      bytes += next.source?.length ?? 0;
      done += 1;
      const { entry, source } = next;
      const isFull = this.#calls.add(next, entry, source && hash('sha256', source), storedText(source));
      if (isFull) void this.#flusher.now();
      else this.#flusher.later();
    }
    this.#undigested = this.#undigested.slice(done);
    this.#undigestedBytes -= bytes;
  }

  #drop(): void {
    this.#dropped += 1;
    if (this.#dropped === 1) this.#options.log.warn('the audit log cannot be written: entries are dropped');
  }

  /**
   * Other operations run between two writes. Entries that arrive meanwhile wait for the next write, and so do
   * calls of an incomplete block when there is a whole block.
   */
  async #write(): Promise<boolean> {
    if (this.#calls.finished.length === 0) this.#calls.end();
    for (let due = this.#changes.length; due > 0; due -= MAX_ROWS) {
      const chunk = this.#changes.slice(0, MAX_ROWS);
      if (!(await this.#append(chunk.length, () => this.#options.store.append(chunk)))) return true;
      this.#changes = this.#changes.slice(chunk.length);
    }
    if (!(await this.#writeBlocks())) return true;
    if (this.#dropped > 0) {
      this.#options.log.warn({ entries: this.#dropped }, 'entries of the audit log were dropped');
      this.#dropped = 0;
    }
    const isHourly = this.#now() >= this.#nextHourlyMs;
    if (isHourly || this.#sinceTrim >= this.#trimEvery) await this.#trim(isHourly);
    return !this.#calls.isEmpty;
  }

  /** False when the database is unavailable. */
  async #writeBlocks(): Promise<boolean> {
    const { finished } = this.#calls;
    for (let block = finished[0]; block !== undefined; block = finished[0]) {
      const next = block;
      if (!(await this.#append(next.calls, () => this.#options.store.appendCalls(next)))) return false;
      finished.shift();
      this.#waitingCalls -= next.calls;
    }
    return true;
  }

  /** Resolves when the database accepted or refused the entries; with false when it is unavailable. */
  async #append(count: number, append: () => Promise<void>): Promise<boolean> {
    await nextTurn(); // a block is made in one turn and written in another, so that calls wait for one of them only
    try {
      await append();
    } catch (error) {
      const { code } = asGatewayError(error);
      if (code === 'DATABASE_UNAVAILABLE') return false;
      // The database is available, so the same entries would fail again and hold up all others.
      this.#options.log.warn({ entries: count, reason: code }, 'entries of the audit log were refused');
    }
    this.#sinceTrim += count;
    return true;
  }

  async #trim(isHourly: boolean): Promise<void> {
    this.#sinceTrim = 0;
    if (isHourly) this.#nextHourlyMs = this.#now() + TRIM_MS;
    await nextTurn();
    try {
      const from = isHourly ? await this.#oldestKept() : undefined;
      await this.#options.store.trim({
        changes: MAX_CHANGES,
        calls: this.#options.settings.keptCalls,
        from,
      });
    } catch {
      // A later trim tries again: a longer log does no harm for a while.
    }
  }

  /**
   * The time of the oldest entry to keep. Undefined when no entry is too old, and while the clock of this machine may be wrong,
   * since deleted entries are lost.
   */
  async #oldestKept(): Promise<string | undefined> {
    const { clock, log, settings } = this.#options;
    if (settings.keptDays === 0) return undefined;
    const reason = await this.#doubt();
    if (reason === undefined) return idAt(clock.wall() - settings.keptDays * DAY_MS);
    log.warn({ reason }, 'no entries of the audit log are deleted for their age: the clock may be wrong');
    return undefined;
  }
}

/** Arguments as received: objects are kept as text, except those made in this process. */
function sourceOf(callArguments: JsonFields[string]): Uint8Array | string | undefined {
  if (callArguments === undefined) return undefined;
  return callArguments instanceof JsonText ? callArguments.source : JSON.stringify(callArguments);
}

function beginningOf(source: Uint8Array | string): string {
  const text =
    typeof source === 'string'
      ? source
      : Buffer.from(source.subarray(0, 4 * LIMITS.auditArgumentUnits)).toString();
  return cutText(text, LIMITS.auditArgumentUnits);
}

/** Texts are cut, so that no entry is refused for its length. */
function entryOf(
  { actor, actorName, action, subject, status, address, requestId }: NewEntry,
  { id, at }: Stamp,
): AuditEntry {
  return {
    id,
    at,
    actor: auditText(actor),
    actorName: auditText(actorName),
    action: auditText(action),
    subject: auditText(subject),
    status,
    address: address && auditText(address),
    requestId: requestId && auditText(requestId),
  };
}

const MAX_SEQUENCES = 4_096;

/**
 * Ids that sort by time as texts and are unique across nodes: UUID version 7 (RFC 9562). The ids of one
 * process rise strictly, even within a millisecond and when the clock is set back.
 */
export function timeOrderedIds(wall: Clock['wall']): () => string {
  // 62 random bits per process; time and sequence distinguish the ids of one process.
  const node = randomBytes(8);
  node.writeUInt8((node.readUInt8(0) & 0x3f) | 0x80, 0);
  const tail = `${node.toString('hex', 0, 2)}-${node.toString('hex', 2)}`;
  let lastMs = 0;
  let head = idAt(lastMs);
  let sequence = 0;
  return () => {
    const nowMs = Math.floor(wall());
    sequence = nowMs > lastMs ? 0 : (sequence + 1) % MAX_SEQUENCES;
    if (nowMs > lastMs || sequence === 0) {
      lastMs = Math.max(lastMs + 1, nowMs);
      head = idAt(lastMs);
    }
    return `${head}-7${sequence.toString(16).padStart(3, '0')}-${tail}`;
  };
}
