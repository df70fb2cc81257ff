// The audit log: entries are buffered and written in batches, so that recording costs a request little. HTTP records them. What is
// recorded is written within FLUSH_MS, so that is what a crash may lose; a stop loses nothing that the database takes. Source: ADR 77.

import { hash } from 'node:crypto';
import type { Logger } from 'pino';
import { type AuditEntry, CALL_ACTION } from '../domain/audit.ts';
import { asGatewayError } from '../domain/errors.ts';
import { type JsonFields, JsonText } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { cutText } from '../domain/text.ts';
import type { AuditStore } from '../persistence/store.ts';
import { idAt, timeOrderedIds } from './audit-ids.ts';
import type { Audit, AuditQuery, NewCall } from './auth.ts';
import { Flusher } from './flusher.ts';

/** Entries are written at this age, or when this many wait, whichever comes first. */
const FLUSH_MS = 1_000;
const FLUSH_ENTRIES = 1_000;
/** Changes, and as many calls, that wait while the database is away; the next ones are counted and dropped. */
const BUFFER_ENTRIES = 10_000;
/**
 * Entries in one writing, and those with arguments: a database far away has to take them within the time of one operation. A
 * file is synchronized once for each.
 */
const CHUNK_ENTRIES = 500;
const CHUNK_WITH_ARGUMENTS = 100;
/** The newest changes are kept. The log is cut at the first writing, then each time this many entries were written, and hourly. */
const KEPT_CHANGES = 100_000;
const TRIM_EVERY_ENTRIES = 5_000;
const TRIM_MS = 3_600_000;
/** Bytes of arguments that are digested in one turn of the event loop, about: 1 ms. */
const DIGESTED_BYTES = 1_000_000;
/** Shortest time between two lines about dropped entries, in ms. */
const COMPLAINT_MS = 60_000;
const DAY_MS = 86_400_000;

type NewEntry = Omit<AuditEntry, 'id' | 'at'>;

/** Which calls are recorded, and how long entries are kept. */
export interface AuditSettings {
  readonly recordsCalls: boolean;
  /** The beginning of the arguments is stored besides their digest. */
  readonly storesArguments: boolean;
  /** The newest calls are kept. */
  readonly keptCalls: number;
  /** Older entries are deleted; 0: none. */
  readonly keptDays: number;
}

export interface AuditOptions {
  readonly store: AuditStore;
  readonly log: Pick<Logger, 'warn'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Default: no calls, and no limit by age. */
  readonly settings?: AuditSettings | undefined;
}

/** An entry of a call whose arguments are not digested yet. */
interface Undigested {
  readonly entry: AuditEntry;
  readonly call: NewCall['call'];
  readonly source: Uint8Array | string | undefined;
}

export class AuditLog implements Audit {
  readonly #store: AuditStore;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #now: () => number;
  readonly #settings: AuditSettings;
  readonly #nextId: () => string;
  readonly #flusher = new Flusher(FLUSH_MS, () => this.#write());
  #undigested: Undigested[] = [];
  #waiting: AuditEntry[] = [];
  /** Of those that wait, digested or not. */
  #waitingCalls = 0;
  #dropped = 0;
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  #sinceTrim = TRIM_EVERY_ENTRIES;
  #trimTimer: NodeJS.Timeout | undefined;

  constructor({ store, log, now, settings = CHANGES_ONLY }: AuditOptions) {
    this.#store = store;
    this.#log = log;
    this.#now = now;
    this.#settings = settings;
    this.#nextId = timeOrderedIds(now);
  }

  get recordsCalls(): boolean {
    return this.#settings.recordsCalls;
  }

  record(entry: NewEntry): void {
    if (this.#waiting.length - this.#waitingCalls >= BUFFER_ENTRIES) this.#drop();
    else this.#wait(this.#stamped(entry));
  }

  recordCall(entry: NewCall, callArguments: JsonFields[string]): void {
    if (!this.#settings.recordsCalls) return;
    if (this.#waitingCalls >= BUFFER_ENTRIES) {
      this.#drop();
      return;
    }
    this.#waitingCalls += 1;
    const { call, ...common } = entry;
    const stamped = this.#stamped({ ...common, action: CALL_ACTION });
    this.#undigested.push({ entry: stamped, call: cutCall(call), source: sourceOf(callArguments) });
    if (this.#undigested.length === 1) setImmediate(() => this.#digest(DIGESTED_BYTES));
  }

  async list({ limit, before, fromMs, toMs, ...filter }: AuditQuery): Promise<AuditEntry[]> {
    this.#digest();
    await this.#flusher.beforeReading();
    const until = toMs === undefined ? undefined : idAt(toMs);
    const first = before === undefined || (until !== undefined && until < before) ? until : before;
    return this.#store.list({
      limit,
      before: first,
      from: fromMs === undefined ? undefined : idAt(fromMs),
      filter,
    });
  }

  /** Writes what waits; bounded in time. What cannot be written is lost, with a warning that says how much. */
  async close(): Promise<void> {
    this.#digest();
    await this.#flusher.close();
    clearInterval(this.#trimTimer); // not before the last writing, which may start it
    const lost = this.#waiting.length + this.#dropped;
    if (lost > 0) this.#log.warn({ entries: lost }, 'entries of the audit log were lost');
  }

  #stamped(entry: NewEntry): AuditEntry {
    return { ...cutTexts(entry), id: this.#nextId(), at: new Date(this.#now()).toISOString() };
  }

  /** Digests arguments up to a number of bytes, the rest in the turns that follow. Default: all. */
  #digest(mostBytes = Number.POSITIVE_INFINITY): void {
    let bytes = 0;
    let done = 0;
    while (done < this.#undigested.length && bytes < mostBytes) {
      const next = this.#undigested[done];
      if (next === undefined) break;
      bytes += next.source?.length ?? 0;
      done += 1;
      this.#wait(digested(next, this.#settings.storesArguments));
    }
    this.#undigested = this.#undigested.slice(done);
    if (this.#undigested.length > 0) setImmediate(() => this.#digest(mostBytes));
  }

  #wait(entry: AuditEntry): void {
    this.#waiting.push(entry);
    if (this.#waiting.length === FLUSH_ENTRIES) void this.#flusher.now();
    else this.#flusher.later();
  }

  #drop(): void {
    this.#dropped += 1;
    this.#complain('the audit log cannot be written: entries are dropped');
  }

  #complain(message: string): void {
    const now = this.#now();
    if (now < this.#silentUntilMs) return;
    this.#silentUntilMs = now + COMPLAINT_MS;
    this.#log.warn({ entries: this.#dropped }, message);
  }

  async #write(): Promise<boolean> {
    while (this.#waiting.length > 0) {
      const most = this.#settings.storesArguments ? CHUNK_WITH_ARGUMENTS : CHUNK_ENTRIES;
      const chunk = this.#waiting.slice(0, most);
      try {
        await this.#store.append(chunk);
      } catch (error) {
        const { code } = asGatewayError(error);
        if (code === 'DATABASE_UNAVAILABLE') return true;
        // Not the database's absence, so the same entries would fail again and hold up all others.
        this.#log.warn({ entries: chunk.length, reason: code }, 'entries of the audit log were refused');
      }
      this.#waiting = this.#waiting.slice(chunk.length);
      this.#waitingCalls -= chunk.filter(({ call }) => call !== undefined).length;
      this.#sinceTrim += chunk.length;
    }
    if (this.#dropped > 0) {
      this.#log.warn({ entries: this.#dropped }, 'entries of the audit log were dropped');
      this.#dropped = 0;
      this.#silentUntilMs = Number.NEGATIVE_INFINITY;
    }
    if (this.#sinceTrim >= TRIM_EVERY_ENTRIES) await this.#trim();
    return false;
  }

  async #trim(): Promise<void> {
    this.#sinceTrim = 0;
    const { keptCalls, keptDays } = this.#settings;
    if (keptDays > 0) this.#trimTimer ??= setInterval(() => void this.#trim(), TRIM_MS).unref();
    const from = keptDays === 0 ? undefined : idAt(this.#now() - keptDays * DAY_MS);
    try {
      await this.#store.trim({ changes: KEPT_CHANGES, calls: keptCalls, from });
    } catch {
      // The next writing but a few, or the next hour, tries again: a longer log does no harm for a while.
    }
  }
}

const CHANGES_ONLY: AuditSettings = {
  recordsCalls: false,
  storesArguments: false,
  keptCalls: Number.MAX_SAFE_INTEGER,
  keptDays: 0,
};

/** Arguments as they were received: their object is kept as text, unless it was made here. */
function sourceOf(callArguments: JsonFields[string]): Uint8Array | string | undefined {
  if (callArguments === undefined) return undefined;
  return callArguments instanceof JsonText ? callArguments.source : JSON.stringify(callArguments);
}

function digested({ entry, call, source }: Undigested, storesArguments: boolean): AuditEntry {
  if (source === undefined) return { ...entry, call };
  const digest = hash('sha256', source);
  const stored = storesArguments ? { arguments: beginningOf(source) } : {};
  return { ...entry, call: { ...call, digest, ...stored } };
}

function beginningOf(source: Uint8Array | string): string {
  const text =
    typeof source === 'string'
      ? source
      : Buffer.from(source.subarray(0, 4 * LIMITS.auditArgumentUnits)).toString();
  return cutText(text, LIMITS.auditArgumentUnits);
}

/** No entry is lost over its length. */
function cutTexts({ address, requestId, ...entry }: NewEntry): NewEntry {
  return {
    actor: cutText(entry.actor, LIMITS.auditTextUnits),
    actorName: cutText(entry.actorName, LIMITS.auditTextUnits),
    action: cutText(entry.action, LIMITS.auditTextUnits),
    subject: cutText(entry.subject, LIMITS.auditTextUnits),
    status: entry.status,
    ...(address === undefined ? {} : { address: cutText(address, LIMITS.auditTextUnits) }),
    ...(requestId === undefined ? {} : { requestId: cutText(requestId, LIMITS.auditTextUnits) }),
  };
}

function cutCall({ template, tool, instance, ...call }: NewCall['call']): NewCall['call'] {
  return {
    ...call,
    template: cutText(template, LIMITS.auditTextUnits),
    tool: cutText(tool, LIMITS.auditTextUnits),
    ...(instance === undefined ? {} : { instance: cutText(instance, LIMITS.auditTextUnits) }),
  };
}
