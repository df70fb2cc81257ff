// The tools that a caller may find, with their index.

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Observable, Subscription } from 'rxjs';
import { canonicalText, type JsonObject } from '../../../domain/json/json.ts';
import type { Client } from '../../../domain/mcp/client.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { FairSlots } from '../../../domain/time/fair-slots.ts';
import type { Timing } from '../../../domain/time/task-scheduler.ts';
import { shortKey } from '../../client-bounds.ts';
import type { FindableTool, ToolIndex } from '../../tool-search/tool-index.ts';
import { isForPagesOnly } from '../uris/mcp-apps.ts';
import type { Directory, Listing } from './directory.ts';

/** The most callers whose tools are remembered. */
const MAX_CALLERS = 1_000;
/** Memory of all indexes of a gateway. */
const MAX_INDEX_BYTES = 128 * 1024 * 1024;
/** Memory of one tool besides the text of its definition and its words in the index, about. */
const BYTES_PER_TOOL = 512;
/** The time after which the tools are listed again, in the background: not every server announces a change. */
const FRESH_MS = 60_000;

export interface FindableToolsDeps extends Timing {
  readonly indexes: ToolIndexes;
  readonly directory: Pick<Directory, 'listing' | 'knownTarget'>;
  /** Hot: any list may be another one now. */
  readonly changes$: Observable<unknown>;
}

interface IndexedTools {
  readonly index: ToolIndex;
  /** The JSON of the definitions as they are listed, by listed name. */
  readonly texts: ReadonlyMap<string, string>;
  readonly missing: Listing['missing'];
}

interface Listed extends Pick<IndexedTools, 'missing'> {
  readonly digest: string;
  readonly version: number;
  readonly readAtMs: number;
}

type Kept = Omit<IndexedTools, 'missing'> & { readonly bytes: number };

/** The indexes of a gateway by the digest of their tools: views with equal lists share one. */
export class ToolIndexes {
  /** The indexes. One that is larger than the bound of all is kept alone: it would be made for each search otherwise. */
  readonly kept = new LRUCache<string, Kept>({
    maxSize: MAX_INDEX_BYTES,
    sizeCalculation: ({ bytes }) => Math.min(bytes, MAX_INDEX_BYTES),
  });
  /**
   * The readings of lists, one at a time: each takes as much memory again until it turns out that the list is known. Callers
   * take turns.
   */
  readonly readings: FairSlots;
  /** The digest of a list, by its tools, as long as they are kept. */
  readonly digests = new WeakMap<readonly JsonObject[], string>();

  constructor(timing: Timing) {
    this.readings = new FairSlots({ atOnce: 1, atOncePerShare: 1, ...timing });
  }
}

/**
 * The index of the tools of each caller. It is made with the first search, in several turns of the event loop, and
 * serves all callers with the same tools until a list changes. Source: ADR 237.
 */
export class FindableTools {
  readonly #deps: FindableToolsDeps;
  readonly #ofCaller = new LruMap<Listed>(MAX_CALLERS);
  readonly #reading = new Map<string, Promise<IndexedTools>>();
  /** Counts changes of lists. */
  #version = 0;
  #watch: Subscription | undefined;

  constructor(deps: FindableToolsDeps) {
    this.#deps = deps;
  }

  /** The tools of a client. Never rejects because of a template: templates that do not answer are `missing`. */
  async of(client: Client): Promise<IndexedTools> {
    this.#watch ??= this.#deps.changes$.subscribe(() => {
      this.#version += 1;
    });
    const key = callerKey(client);
    const listed = this.#ofCaller.get(key);
    const kept = listed && this.#deps.indexes.kept.get(listed.digest);
    if (listed === undefined || kept === undefined || listed.version !== this.#version)
      return this.#read(key, client);
    if (this.#deps.clock.now() - listed.readAtMs > FRESH_MS) this.#read(key, client).catch(() => undefined); // the next search tries again
    return { ...kept, missing: listed.missing };
  }

  /** Equal requests share one reading, unless a list has changed since it began. */
  #read(key: string, client: Client): Promise<IndexedTools> {
    const readingKey = `${this.#version} ${key}`;
    const known = this.#reading.get(readingKey);
    if (known !== undefined) return known;
    const reading = this.#readNow(key, client).finally(() => this.#reading.delete(readingKey));
    this.#reading.set(readingKey, reading);
    return reading;
  }

  async #readNow(key: string, client: Client): Promise<IndexedTools> {
    const { directory, clock, indexes } = this.#deps;
    const version = this.#version;
    const { items, missing } = await directory.listing('tools', client);
    const { digest, kept } = await indexes.readings.take({
      shareId: client.owner.id,
      start: () => this.#indexed(items, client),
    });
    this.#ofCaller.set(key, { digest, missing, version, readAtMs: clock.now() });
    return { ...kept, missing };
  }

  async #indexed(items: readonly JsonObject[], client: Client): Promise<{ digest: string; kept: Kept }> {
    const { directory, scheduler, clock, indexes } = this.#deps;
    const read = indexes.digests.get(items);
    const same = read === undefined ? undefined : indexes.kept.get(read);
    if (read !== undefined && same !== undefined) return { digest: read, kept: same };
    const hash = createHash('sha256');
    const tools: FindableTool[] = [];
    const texts = new Map<string, string>();
    let bytes = 0;
    await scheduler.each(items, (definition) => {
      const name = String(definition.name);
      if (isForPagesOnly(definition)) return;
      const own = directory.knownTarget(name, client.owner) ?? { template: '', name };
      const text = JSON.stringify(definition);
      hash.update(`${own.template}\0${own.name}\0${text}\0`);
      texts.set(name, text);
      tools.push({ name, own: own.name, server: own.template, definition });
      bytes += text.length + BYTES_PER_TOOL;
    });
    const digest = hash.digest('base64');
    indexes.digests.set(items, digest);
    const known = indexes.kept.get(digest);
    if (known !== undefined) return { digest, kept: known };
    const { ToolIndex } = await import('../../tool-search/tool-index.ts');
    const index = await ToolIndex.of(tools, { clock, scheduler });
    const kept = { index, texts, bytes: Math.max(1, bytes + index.bytes) };
    indexes.kept.set(digest, kept);
    return { digest, kept };
  }
}

/** Callers with equal keys get equal lists: it contains all rights of the owner. */
function callerKey({ owner, profile }: Client): string {
  return shortKey(
    JSON.stringify(owner, (_, value) => (value instanceof Set ? [...value].sort() : value)),
    profile.protocolVersion,
    canonicalText(profile.capabilities),
  );
}
