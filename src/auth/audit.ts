// The audit log: entries are buffered and written in batches, so that recording costs a request nothing. HTTP records them.

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { AuditEntry } from '../domain/account.ts';
import { asGatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { cutText } from '../domain/text.ts';
import type { AuditStore } from '../persistence/store.ts';
import type { Audit } from './auth.ts';
import { Flusher } from './flusher.ts';

/** Entries are written at this age, or when this many wait, whichever comes first. */
const FLUSH_MS = 1_000;
const FLUSH_ENTRIES = 100;
/** Entries that wait while the database is away; the next ones are counted and dropped. */
const BUFFER_ENTRIES = 10_000;
/** Entries in one writing: a database far away has to take them within the time of one operation. */
const CHUNK_ENTRIES = 100;
/** The log keeps its newest entries; it is cut at the first writing and then each time this many were written. */
const KEPT_ENTRIES = 100_000;
const TRIM_EVERY_ENTRIES = 10_000;

type NewEntry = Omit<AuditEntry, 'id' | 'at'>;

export interface AuditOptions {
  readonly store: AuditStore;
  readonly log: Pick<Logger, 'warn'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class AuditLog implements Audit {
  readonly #store: AuditStore;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #now: () => number;
  readonly #nextId: () => string;
  readonly #flusher = new Flusher(FLUSH_MS, () => this.#write());
  #waiting: AuditEntry[] = [];
  #dropped = 0;
  #sinceTrim = TRIM_EVERY_ENTRIES;

  constructor({ store, log, now }: AuditOptions) {
    this.#store = store;
    this.#log = log;
    this.#now = now;
    this.#nextId = timeOrderedIds(now);
  }

  record(entry: NewEntry): void {
    if (this.#waiting.length >= BUFFER_ENTRIES) {
      if (this.#dropped === 0) this.#log.warn('the audit log cannot be written: new entries are dropped');
      this.#dropped += 1;
      return;
    }
    this.#waiting.push({
      ...cutTexts(entry),
      id: this.#nextId(),
      at: new Date(this.#now()).toISOString(),
    });
    if (this.#waiting.length === FLUSH_ENTRIES) void this.#flusher.now();
    else this.#flusher.later();
  }

  async list({ limit, before }: { limit: number; before?: string | undefined }): Promise<AuditEntry[]> {
    await this.#flusher.beforeReading();
    return this.#store.list({ limit, ...(before === undefined ? {} : { before }) });
  }

  /** Writes what waits; bounded in time. What cannot be written is lost, with a warning that says how much. */
  async close(): Promise<void> {
    await this.#flusher.close();
    const lost = this.#waiting.length + this.#dropped;
    if (lost > 0) this.#log.warn({ entries: lost }, 'entries of the audit log were lost');
  }

  async #write(): Promise<boolean> {
    while (this.#waiting.length > 0) {
      const chunk = this.#waiting.slice(0, CHUNK_ENTRIES);
      try {
        await this.#store.append(chunk);
      } catch (error) {
        const { code } = asGatewayError(error);
        if (code === 'DATABASE_UNAVAILABLE') return true;
        // Not the database's absence, so the same entries would fail again and hold up all others.
        this.#log.warn({ entries: chunk.length, reason: code }, 'entries of the audit log were refused');
      }
      this.#waiting = this.#waiting.slice(chunk.length);
      this.#sinceTrim += chunk.length;
    }
    if (this.#dropped > 0) {
      this.#log.warn({ entries: this.#dropped }, 'entries of the audit log were dropped');
      this.#dropped = 0;
    }
    await this.#trim();
    return false;
  }

  async #trim(): Promise<void> {
    if (this.#sinceTrim < TRIM_EVERY_ENTRIES) return;
    this.#sinceTrim = 0;
    try {
      await this.#store.trim(KEPT_ENTRIES);
    } catch {
      // The next writing but a few tries again: a longer log does no harm for a while.
    }
  }
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

// Makes ids that sort by time as texts and that no two nodes share: UUID version 7 (RFC 9562).

const SEQUENCES = 4_096;

/** Ids of one process rise strictly, also within a millisecond and when the clock steps back. `now`: ms since 1970. */
export function timeOrderedIds(now: () => number): () => string {
  // 62 random bits per process; within one, time and sequence make the difference.
  const node = randomBytes(8);
  node.writeUInt8((node.readUInt8(0) & 0x3f) | 0x80, 0);
  const tail = node.toString('hex');
  let lastMs = 0;
  let sequence = 0;
  return () => {
    const nowMs = Math.floor(now());
    sequence = nowMs > lastMs ? 0 : sequence + 1;
    lastMs = Math.max(lastMs, nowMs);
    if (sequence === SEQUENCES) {
      lastMs += 1;
      sequence = 0;
    }
    const time = lastMs.toString(16).padStart(12, '0');
    const rand = sequence.toString(16).padStart(3, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7${rand}-${tail.slice(0, 4)}-${tail.slice(4)}`;
  };
}
