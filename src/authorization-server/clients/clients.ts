// The clients of the authorization server: registered clients and clients that an admin added are rows, clients with a document
// are found by its URL. Source: ADR 203.

import { randomBytes, randomUUID } from 'node:crypto';
import type { ClientRule } from '../../config/setting-types.ts';
import type { Scope } from '../../domain/accounts/account.ts';
import type { RightsLists } from '../../domain/accounts/rights.ts';
import { tooManyAttempts } from '../../domain/errors/account-errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import { type Clock, DAY_MS, isRecent } from '../../domain/time/clock.ts';
import { OutsiderCounter } from '../../net/outsider-counter.ts';
import { clientKeyOf, prolonged, readUndamaged } from '../../persistence/oauth-rows.ts';
import { MAX_OAUTH_ROWS, type OAuthRow, type OAuthStore } from '../../persistence/oauth-store.ts';
import { type ClientDocuments, DocumentFault, isDocumentUrl } from './client-documents.ts';
import {
  BadClient,
  type ClientRecord,
  COMMAND_LINE,
  clientOf,
  isLoopbackRedirect,
  JWT_BEARER,
} from './client-record.ts';
import { readClient } from './client-rows.ts';

/** The time for which a registration is kept that no user has allowed. */
const UNUSED_CLIENT_MS = DAY_MS;
export const MAX_UNUSED = 1_000;
/** An unused registration of this age makes room for another. */
const SPARED_MS = 10 * 60_000;
/** The time for which a client is kept after its last token. */
const USED_MS = 180 * DAY_MS;
export const MAX_REGISTRATIONS_PER_MINUTE = 10;
/** Registrations of one site, such as all networks of one outsider, within SPARED_MS: else they would take all unused ones. */
const MAX_PER_SITE = MAX_UNUSED / 10;
const MAX_COUNTED = 10_000;
/** Bound for each client that authenticates by its key. */
const MAX_ASSERTIONS_PER_MINUTE = 600;
const MAX_LISTED = 1_000;
/** The longest time until this node knows that another node has removed a client. */
const REMOVAL_KNOWN_MS = 10_000;

interface ClientsOptions {
  readonly clock: Clock;
  readonly store: OAuthStore;
  readonly documents: Pick<ClientDocuments, 'find'>;
  readonly rule: ClientRule;
  /** Whether the store keeps secrets. Without it clients get none. */
  readonly keepsSecrets: boolean;
  /** Called for each damaged row of a list. */
  readonly warn: (line: string) => void;
}

interface Listed {
  readonly client: ClientRecord;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly usedAt?: string | undefined;
}

interface NewClient {
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly scopes: readonly Scope[];
  readonly lists?: RightsLists | undefined;
  readonly isConfidential: boolean;
}

/** Finds, registers, adds and removes clients, within the rule of the settings. */
export class Clients {
  readonly #options: ClientsOptions;
  readonly #registrations = new OutsiderCounter({
    windowSeconds: 60,
    perNetwork: MAX_REGISTRATIONS_PER_MINUTE,
    siteSeconds: SPARED_MS / 1_000,
    perSite: MAX_PER_SITE,
  });
  /** The time at which a use was last written, by key of the client. */
  readonly #usedAtMs = new LruMap<number>(MAX_COUNTED);
  /** The known clients by key: a sign-in looks its client up in each request. */
  readonly #known = new LruMap<{ readonly client: ClientRecord; readonly atMs: number }>(MAX_COUNTED);
  #removals = 0;
  readonly #assertions = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });

  constructor(options: ClientsOptions) {
    this.#options = options;
  }

  /** Whether clients register themselves, and have documents. */
  get areOpen(): boolean {
    return this.#options.rule !== 'known';
  }

  /** Resolves with undefined for an unknown client. Throws DocumentFault. `isFresh`: as the store has it now. */
  async find(id: string, causedBy: string, isFresh = false): Promise<ClientRecord | undefined> {
    if (id === COMMAND_LINE.id) return COMMAND_LINE;
    const key = clientKeyOf(id);
    const { store, clock } = this.#options;
    const known = this.#known.get(key);
    if (!isFresh && known !== undefined && clock.now() - known.atMs < REMOVAL_KNOWN_MS) return known.client;
    const removals = this.#removals;
    const [row] = await store.find('client', [key]);
    if (row !== undefined) {
      const client = readClient(row);
      // The removed client may have been this one.
      if (removals === this.#removals) this.#known.set(key, { client, atMs: clock.now() });
      return client;
    }
    this.#known.delete(key);
    if (!this.areOpen || !isDocumentUrl(id)) return undefined;
    const { host } = new URL(id);
    if (!this.#isHostAllowed(host))
      throw new DocumentFault(400, 'the gateway does not accept clients of this host');
    return this.#options.documents.find(id, causedBy);
  }

  /** The next look reads it from the store. */
  forget(id: string): void {
    this.#known.delete(clientKeyOf(id));
  }

  /** Counts a request to register, before anything of it is read. Throws TOO_MANY_ATTEMPTS. */
  admit(address: string): void {
    const full = this.#registrations.add(address, this.#options.clock.now());
    if (full !== undefined) throw tooManyAttempts(Math.max(1, Math.ceil(full.endsInMs / 1_000)));
  }

  /** Counts a client that authenticated by its key. False when there are too many from this network. */
  admitAssertion(network: string): boolean {
    return this.#assertions.add(network, this.#options.clock.now(), 1).count <= MAX_ASSERTIONS_PER_MINUTE;
  }

  /** Throws BadClient; TOO_MANY_ATTEMPTS when there is no room. */
  async register(fields: unknown): Promise<ClientRecord> {
    const { store, keepsSecrets } = this.#options;
    const read = clientOf(fields, { id: randomUUID(), source: 'registered', scopes: [] });
    this.#checkHosts(read.redirectUris);
    await this.#makeRoom();
    // RFC 7591: the server may replace the requested values, and says so in its answer.
    const isConfidential = read.authMethod !== 'none' && keepsSecrets;
    const client: ClientRecord = isConfidential
      ? { ...read, secret: newSecret() }
      : { ...read, authMethod: 'none', mayAssert: undefined };
    await store.save(this.#rowOf(client, UNUSED_CLIENT_MS));
    return client;
  }

  /** A client that an admin knows. Throws BadClient. */
  async add(input: NewClient): Promise<Omit<Listed, 'usedAt'>> {
    const { name, redirectUris, scopes, lists, isConfidential } = input;
    const fields = {
      client_name: name,
      redirect_uris: [...redirectUris],
      grant_types: ['authorization_code', 'refresh_token', JWT_BEARER],
      token_endpoint_auth_method: isConfidential ? 'client_secret_basic' : 'none',
    };
    const read = clientOf(fields, { id: randomUUID(), source: 'added', scopes, lists });
    if (isConfidential && !this.#options.keepsSecrets)
      throw new BadClient(
        'invalid_client_metadata',
        'a secret needs GATEWAY_SECRET_KEY or GATEWAY_ENCRYPTION_KEY',
      );
    const client = isConfidential ? { ...read, secret: newSecret() } : read;
    const row = this.#rowOf(client, undefined);
    await this.#options.store.save(row);
    return { client, createdAt: row.createdAt };
  }

  /** All clients, without damaged rows. */
  async list(): Promise<Listed[]> {
    const { store, warn } = this.#options;
    const listed = (row: OAuthRow) => ({
      client: readClient(row),
      createdAt: row.createdAt,
      usedAt: usedAtOf(row),
    });
    return readUndamaged(await store.list({ kind: 'client' }, MAX_LISTED), listed, warn);
  }

  /** Removes the client and ends its grants. False when there was no such client. */
  async remove(id: string): Promise<boolean> {
    const key = clientKeyOf(id);
    const isRemoved = await this.#options.store.end({ clientKey: key });
    this.#removals += 1;
    this.#known.delete(key);
    return isRemoved;
  }

  /** Keeps a client longer, because a user has allowed it or it got a token. */
  async used(id: string): Promise<void> {
    const { store, clock } = this.#options;
    const wasUsed = (atMs = Number.NaN) => isRecent(atMs, DAY_MS, clock.wall());
    const key = clientKeyOf(id);
    // Each sign-in comes here twice.
    if (wasUsed(this.#usedAtMs.get(key))) return;
    const [row] = await store.find('client', [key]);
    if (row === undefined) return;
    const beforeMs = Date.parse(usedAtOf(row) ?? '');
    const nowMs = clock.wall();
    if (!wasUsed(beforeMs)) {
      const usedAt = new Date(nowMs).toISOString();
      const expiresAt = row.expiresAt && prolonged(row.expiresAt, nowMs + USED_MS);
      await store.replace({ ...row, usedAt, expiresAt }, row.version);
    }
    // After it is stored: a failed write is tried again with the next use.
    this.#usedAtMs.set(key, wasUsed(beforeMs) ? beforeMs : nowMs);
  }

  #rowOf(client: ClientRecord, keptMs: number | undefined): Omit<OAuthRow, 'version'> {
    const nowMs = this.#options.clock.wall();
    const at = new Date(nowMs).toISOString();
    const key = clientKeyOf(client.id);
    return {
      kind: 'client',
      key,
      clientKey: key,
      createdAt: at,
      // A client that an admin added never counts as an unused registration.
      usedAt: keptMs === undefined ? at : undefined,
      expiresAt: keptMs === undefined ? undefined : new Date(nowMs + keptMs).toISOString(),
      value: JSON.stringify(client),
    };
  }

  async #makeRoom(): Promise<void> {
    const { store, clock } = this.#options;
    const unused = { kind: 'client', isUsed: false } as const;
    const surplus = (await store.count(unused)) - MAX_UNUSED + 1;
    if (surplus <= 0) return;
    // Registrations at once remove the same ones: the next one removes what they were too many.
    const oldest = await store.oldest(unused, Math.min(surplus, MAX_OAUTH_ROWS));
    const ended = oldest.filter(({ createdAt }) => !isRecent(Date.parse(createdAt), SPARED_MS, clock.wall()));
    if (ended.length === 0) throw tooManyAttempts(Math.ceil(SPARED_MS / 1_000));
    await store.delete(
      'client',
      ended.map(({ key }) => key),
    );
  }

  #checkHosts(uris: readonly string[]): void {
    const hosts = uris
      .map((uri) => new URL(uri))
      .map((url) => {
        if (url.protocol === 'https:') return url.host;
        return isLoopbackRedirect(url) ? 'localhost' : url.protocol;
      });
    const refused = hosts.find((host) => !this.#isHostAllowed(host));
    if (refused !== undefined)
      throw new BadClient('invalid_redirect_uri', `the gateway does not accept clients of ${refused}`);
  }

  #isHostAllowed(host: string): boolean {
    const { rule } = this.#options;
    return rule === 'any' || (rule !== 'known' && rule.includes(host));
  }
}

/** The result is undefined before the first use, also of a client that an admin added. */
function usedAtOf({ createdAt, usedAt }: Pick<OAuthRow, 'createdAt' | 'usedAt'>): string | undefined {
  return usedAt === createdAt ? undefined : usedAt;
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
