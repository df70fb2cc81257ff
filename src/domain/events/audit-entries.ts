// The entries of the audit log, their ids, filters for them, and the text form of tool calls, in blocks of
// calls that are close in time. auth/audit/audit-log.ts records them, the stores keep them. Source: ADR 82.

import { withoutCredentials } from '../accounts/written-credentials.ts';
import type { CallOutcome } from '../calls/exchange-event.ts';
import { definedFields } from '../json/json.ts';
import { LIMITS } from '../limits.ts';

export interface AuditEntry {
  /** UUID version 7: ids sort by time as texts. */
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** `Principal.id`, `local` for the command line on the database, or `unknown` before a login. */
  readonly actor: string;
  readonly actorName: string;
  /** The method and path pattern; a command on the database is recorded like the equivalent request. */
  readonly action: string;
  /** The subject of the action: a path of the API. */
  readonly subject: string;
  /** HTTP status of the answer; 0 without HTTP. */
  readonly status: number;
  readonly address?: string | undefined;
  readonly requestId?: string | undefined;
  /**
   * Requests of unknown callers with this action from this address that have no entry of their own; absent when
   * there are none.
   */
  readonly suppressed?: number | undefined;
  /** The call, for an entry whose `action` is CALL_ACTION. */
  readonly call?: AuditedCall | undefined;
}

/** An entry before it is recorded. */
export type NewEntry = Omit<AuditEntry, 'id' | 'at'>;

export const CALL_ACTION = 'tools/call';

export interface AuditedCall {
  /** The template in the path, else that of the instance; empty when neither is known. */
  readonly template: string;
  readonly tool: string;
  /** The view through which it came, if any. */
  readonly view?: string | undefined;
  /** The last instance that it was sent to, if any. */
  readonly instance?: string | undefined;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  readonly attempts: number;
  /** The SHA-256 of the received arguments, hexadecimal; absent without arguments. */
  readonly digest?: string | undefined;
  /** The beginning of the arguments, if the setting audit.arguments is `full`. */
  readonly arguments?: string | undefined;
}

export interface AuditFilter {
  /** Id or name. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly status?: number | undefined;
  /** The fields from here on match calls only. */
  readonly template?: string | undefined;
  readonly tool?: string | undefined;
  readonly view?: string | undefined;
  readonly outcome?: CallOutcome | undefined;
}

export function isMatch(
  { actor, actorName, action, status, call }: AuditEntry,
  filter: AuditFilter,
): boolean {
  return (
    (filter.actor === undefined || actor === filter.actor || actorName === filter.actor) &&
    (filter.action === undefined || action === filter.action) &&
    (filter.status === undefined || status === filter.status) &&
    (filter.template === undefined || call?.template === filter.template) &&
    (filter.tool === undefined || call?.tool === filter.tool) &&
    (filter.view === undefined || call?.view === filter.view) &&
    (filter.outcome === undefined || call?.outcome === filter.outcome)
  );
}

export function newestFirst(left: AuditEntry, right: AuditEntry): number {
  return left.id < right.id ? 1 : -1;
}

/** The most entries that one trim deletes for their age, of `stored` entries: the clock may be wrong. Source: ADR 386. */
export function mostExpired(stored: number): number {
  return Math.max(1, Math.floor(stored / 10));
}

const TIME_DIGITS = 12;

/** The common prefix of all ids of a millisecond (since 1970); it sorts before each of them. */
export function idAt(ms: number): string {
  const latest = 16 ** TIME_DIGITS - 1;
  const time = Math.max(0, Math.min(latest, Math.floor(ms)))
    .toString(16)
    .padStart(TIME_DIGITS, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

/** The millisecond of an id or of a prefix from `idAt`; Infinity for any other text. */
export function timeOfId(id: string): number {
  const [, high = '', low = ''] = /^([0-9a-f]{8})-([0-9a-f]{4})/.exec(id) ?? [];
  return high === '' ? Number.POSITIVE_INFINITY : Number.parseInt(high + low, 16);
}

export interface CallBlock {
  /** The id of the newest call. */
  readonly id: string;
  readonly calls: number;
  /** A BlockDocument as JSON. */
  readonly entries: string;
}

export type CallEntry = AuditEntry & { readonly call: AuditedCall };

/** A call before it is recorded. */
export type NewCall = Omit<CallEntry, 'id' | 'at'>;

/** The longest time between two calls of a block, in ms. */
export const BLOCK_MS = 10_000;
/**
 * The most calls and characters of a block. SQLite writes such a block within one turn of the event loop, and a
 * distant database within the timeout of one operation.
 */
const BLOCK_CALLS = 2_000;
const BLOCK_CHARACTERS = 250_000;
/** Bytes of the calls of a block: a block ends where one more call, which takes 4 kB at most, might not fit. */
const BLOCK_BYTES = 256 * 1024;
const CALL_BYTES = 4 * 1024;

/** The calls of a block share most texts, so each text is written once and calls hold indexes into `texts`. */
interface BlockDocument {
  readonly texts: readonly string[];
  /** The calls, oldest first. */
  readonly calls: readonly CallValues[];
}

/** Id, request id, status, duration, attempts, and the indexes of the texts of `textsOf`; null: missing. */
type CallValues = readonly [string, string | null, number, number, number, readonly (number | null)[]];

/**
 * Collects calls in the order of their ids. A call is serialized at once, into memory that the garbage collector does not
 * copy: later its objects would have been copied, and would no longer be in the processor's cache. Source: ADR 82.
 */
export class CallBlockWriter {
  /** Finished blocks, oldest first; the owner removes those that it has stored. */
  readonly finished: CallBlock[] = [];
  #indexes = new Map<string, number>();
  /** The calls as JSON, one after the other; made with the first call. */
  #text: Buffer | undefined;
  #bytes = 0;
  #calls = 0;
  /** The number of characters of the calls and of the texts. */
  #characters = 0;
  #lastId = '';
  /** A call with this id or a later one belongs to the next block. */
  #endId = '';

  get isEmpty(): boolean {
    return this.#calls === 0;
  }

  /**
   * True when its block is full, and so finished. Texts are cut, so that no entry is refused for its length, except `digest` and
   * `argumentsText`, which are those of the arguments.
   */
  add(
    { id, at }: Pick<AuditEntry, 'id' | 'at'>,
    entry: NewCall,
    digest: string | undefined,
    argumentsText: string | undefined,
  ): boolean {
    const { requestId, status, call } = entry;
    if (id >= this.#endId) this.end();
    if (this.isEmpty) this.#endId = idAt(timeOfId(id) + BLOCK_MS);
    const indexes = this.#indexesOf(at, entry, digest, argumentsText);
    this.#lastId = id;
    const values: CallValues = [
      id,
      requestId === undefined ? null : auditText(requestId),
      status,
      call.durationMs,
      call.attempts,
      indexes,
    ];
    const text = `${this.isEmpty ? '' : ','}${JSON.stringify(values)}`;
    this.#text ??= Buffer.allocUnsafe(BLOCK_BYTES);
    this.#bytes += this.#text.write(text, this.#bytes);
    this.#characters += text.length;
    this.#calls += 1;
    const isFull =
      this.#calls >= BLOCK_CALLS ||
      this.#characters >= BLOCK_CHARACTERS ||
      this.#bytes > BLOCK_BYTES - CALL_BYTES;
    if (isFull) this.end();
    return isFull;
  }

  /** Finishes the block of the last calls, if there are any; the next call begins another one. */
  end(): void {
    if (this.isEmpty) return;
    const texts = JSON.stringify([...this.#indexes.keys()]);
    const calls = this.#text?.toString('utf8', 0, this.#bytes) ?? '';
    this.finished.push({
      id: this.#lastId,
      calls: this.#calls,
      entries: `{"texts":${texts},"calls":[${calls}]}`,
    });
    this.#indexes = new Map();
    this.#bytes = 0;
    this.#calls = 0;
    this.#characters = 0;
  }

  #indexesOf(
    at: string,
    { actor, actorName, address, subject, call }: NewCall,
    digest: string | undefined,
    argumentsText: string | undefined,
  ): (number | null)[] {
    const indexes = [
      this.#indexOf(at),
      this.#indexOf(auditText(actor)),
      this.#indexOf(auditText(actorName)),
      this.#indexOf(address && auditText(address)),
      this.#indexOf(auditText(subject)),
      this.#indexOf(auditText(call.template)),
      this.#indexOf(auditText(call.tool)),
      this.#indexOf(call.outcome),
      this.#indexOf(call.instance && auditText(call.instance)),
      this.#indexOf(digest),
      this.#indexOf(argumentsText),
    ];
    if (call.view !== undefined) indexes.push(this.#indexOf(call.view));
    return indexes;
  }

  #indexOf(text: string | undefined): number | null {
    if (text === undefined) return null;
    const known = this.#indexes.get(text);
    if (known !== undefined) return known;
    this.#characters += text.length;
    this.#indexes.set(text, this.#indexes.size);
    return this.#indexes.size - 1;
  }
}

/** A text of an entry, without credentials, short enough for every database. */
export function auditText(text: string): string {
  return withoutCredentials(text, LIMITS.auditTextUnits);
}

/** The calls of a block, oldest first. The casts are the types that CallBlockWriter wrote. */
export function callsOfBlock({ entries }: Pick<CallBlock, 'entries'>): CallEntry[] {
  const { texts, calls } = JSON.parse(entries) as BlockDocument;
  return calls.map(([id, requestId, status, durationMs, attempts, indexes]) => {
    const named = indexes.map((index) => (index === null ? undefined : texts[index]));
    const [at = '', actor = '', actorName = '', address, subject = '', ...what] = named;
    const [template = '', tool = '', outcome, instance, digest, storedArguments, view] = what;
    return {
      id,
      at,
      actor,
      actorName,
      action: CALL_ACTION,
      subject,
      status,
      ...definedFields({ address, requestId: requestId ?? undefined }),
      call: {
        template,
        tool,
        outcome: outcome as CallOutcome,
        durationMs,
        attempts,
        ...definedFields({ view, instance, digest, arguments: storedArguments }),
      },
    };
  });
}
