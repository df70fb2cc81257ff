// Client ID Metadata Documents: the id of a client is the URL of a document about it.

import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Clock, DAY_MS } from '../../domain/time/clock.ts';
import { clientKeyOf, oauthKey } from '../../persistence/oauth-rows.ts';
import type { OAuthStore } from '../../persistence/oauth-store.ts';
import { BadClient, type ClientRecord, clientOf } from './client-record.ts';
import { readClient } from './client-rows.ts';
import { FetchFailure, type GuardedFetch } from './guarded-fetch.ts';

/** The document of a client cannot be used. The message names no part of it. */
export class DocumentFault extends Error {
  /** 400: it lies; 502: it cannot be fetched; 503: later. */
  readonly status: 400 | 502 | 503;

  constructor(status: DocumentFault['status'], message: string) {
    super(message);
    this.name = 'DocumentFault';
    this.status = status;
  }
}

const BOUNDS = { mostBytes: 5 * 1024, timeoutMs: 2_500 };
const FRESH_MS = 10 * 60_000;
const FAILED_MS = 60_000;
const KEPT_MS = 7 * DAY_MS;
const MAX_KNOWN = 1_000;
/** The most stored documents, over all nodes: any outsider can cause one. The oldest ones are removed, this many at once. */
const MAX_STORED = 1_000;
const MADE_ROOM = 100;
const MAX_ID_LENGTH = 500;

/** True for the URL of a document: https, with a path, and without parts that two readers would resolve differently. */
export function isDocumentUrl(id: string): boolean {
  if (
    id.length > MAX_ID_LENGTH ||
    !/^https:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?\/[^\s#\\]*$/.test(id)
  )
    return false;
  const path =
    id
      .slice('https://'.length)
      .replace(/^[^/]*/, '')
      .split('?')[0] ?? '';
  const hasDots = path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  return !hasDots && path !== '/' && URL.parse(id)?.href === id;
}

interface Kept {
  readonly client: ClientRecord;
  readonly atMs: number;
}

interface ClientDocumentsOptions {
  readonly clock: Clock;
  readonly store: Pick<OAuthStore, 'find' | 'save' | 'count' | 'oldest' | 'delete'>;
  readonly fetch: Pick<GuardedFetch, 'get'>;
}

/**
 * Finds clients by their documents. Documents are kept for a while; a failure is remembered for a minute, and the last
 * good document is used for a week. Source: draft-ietf-oauth-client-id-metadata-document.
 */
export class ClientDocuments {
  readonly #options: ClientDocumentsOptions;
  readonly #kept = new LruMap<Kept>(MAX_KNOWN);
  readonly #failed = new LruMap<{ readonly fault: DocumentFault; readonly atMs: number }>(MAX_KNOWN);
  readonly #pending = new Map<string, Promise<ClientRecord>>();

  constructor(options: ClientDocumentsOptions) {
    this.#options = options;
  }

  /** Throws DocumentFault; DATABASE_UNAVAILABLE. */
  find(id: string, causedBy: string): Promise<ClientRecord> {
    const nowMs = this.#options.clock.now();
    const kept = this.#kept.get(id);
    if (kept !== undefined && nowMs - kept.atMs < FRESH_MS) return Promise.resolve(kept.client);
    const pending = this.#pending.get(id);
    if (pending !== undefined)
      return pending.catch((thrown: unknown) => {
        // The other caller asked too often: that says nothing about the document.
        if (thrown instanceof DocumentFault && thrown.status === 503) return this.#find(id, causedBy);
        throw thrown;
      });
    const finding = this.#find(id, causedBy).finally(() => this.#pending.delete(id));
    this.#pending.set(id, finding);
    return finding;
  }

  async #find(id: string, causedBy: string): Promise<ClientRecord> {
    const { store, clock } = this.#options;
    const failed = this.#failed.get(id);
    let fault = failed !== undefined && clock.now() - failed.atMs < FAILED_MS ? failed.fault : undefined;
    if (fault === undefined) {
      try {
        const client = await this.#fetch(id, causedBy);
        this.#kept.set(id, { client, atMs: clock.now() });
        await this.#makeRoom();
        await store.save({
          kind: 'document',
          key: oauthKey('document', id),
          clientKey: clientKeyOf(id),
          createdAt: new Date(clock.wall()).toISOString(),
          expiresAt: new Date(clock.wall() + KEPT_MS).toISOString(),
          value: JSON.stringify(client),
        });
        return client;
      } catch (thrown) {
        if (!(thrown instanceof DocumentFault)) throw thrown;
        fault = thrown;
        // A caller that asks too often does not spoil the document for others.
        if (fault.status !== 503) this.#failed.set(id, { fault, atMs: clock.now() });
      }
    }
    // A document that lies is not used any more.
    if (fault.status === 400) throw fault;
    const [row] = await store.find('document', [oauthKey('document', id)]);
    if (row?.expiresAt === undefined || Date.parse(row.expiresAt) <= clock.wall()) throw fault;
    return readClient(row);
  }

  async #makeRoom(): Promise<void> {
    const { store } = this.#options;
    if ((await store.count({ kind: 'document' })) < MAX_STORED) return;
    const oldest = await store.oldest({ kind: 'document' }, MADE_ROOM);
    await store.delete(
      'document',
      oldest.map(({ key }) => key),
    );
  }

  async #fetch(id: string, causedBy: string): Promise<ClientRecord> {
    try {
      const { status, body } = await this.#options.fetch.get(new URL(id), causedBy, BOUNDS);
      if (status !== 200) throw new DocumentFault(502, `its server answered with the status ${status}`);
      const fields = parsed(body.toString());
      if (fields?.client_id !== id)
        throw new DocumentFault(400, 'it does not name its own address as client_id');
      return clientOf(fields, { id, source: 'document', scopes: [] });
    } catch (thrown) {
      if (thrown instanceof BadClient) throw new DocumentFault(400, thrown.message);
      if (thrown instanceof FetchFailure) throw new DocumentFault(thrown.isBusy ? 503 : 502, thrown.message);
      throw thrown;
    }
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
