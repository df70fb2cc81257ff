// Looks again and again at those who have something open: whether they may still have what they were let in for. They may
// rest, and would otherwise keep it until somebody asks. What a store says is believed as in authenticator.ts.

import type { Logger } from 'pino';
import type { ApiKey, User } from '../domain/account.ts';
import { hasCode } from '../domain/errors.ts';
import { type AccountStore, MOST_FOUND } from '../persistence/store.ts';
import type { AccountChange } from './accounts.ts';
import { CredentialCache, type StoreChange, type Verified } from './credential-cache.ts';
import { recentlyUsed } from './recently-used.ts';
import type { Identity } from './verifier.ts';
import { type AccountStatus, isActive, keyStatus, userStatus } from './verifier.ts';

/** Between two looks: an expiry, or a change that was missed, is noticed after this at the latest. */
const LOOK_MS = 2_000;
/** Of those that were let in. Who is forgotten is still found to be gone or expired, only not to be another. */
const REMEMBERED = 10_000;
const USER = 'user:';
const KEY = 'key:';

type Known = Verified & AccountStatus;

export interface SessionRevalidatorOptions {
  readonly accounts: Pick<AccountStore, 'findUsers' | 'findApiKeys'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the id of a principal who may not do any more what they were let in for, or perhaps not. */
  readonly onChange: (principalId: string) => void;
  readonly log: Pick<Logger, 'warn'>;
}

export class SessionRevalidator {
  readonly #options: SessionRevalidatorOptions;
  readonly #freshness: CredentialCache;
  /** By id of the principal. */
  readonly #known = recentlyUsed<Known>(REMEMBERED);
  #open: (() => Iterable<string>) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** Moves with every change, so that an answer which was under way at that moment is not taken for news. */
  #epoch = 0;

  constructor(options: SessionRevalidatorOptions) {
    this.#options = options;
    this.#freshness = new CredentialCache(options.now());
  }

  /** Looks at those whom `open` names, by the ids of their principals, until `close`. */
  lookAfter(open: () => Iterable<string>): void {
    this.#open = open;
    this.#timer ??= setInterval(() => void this.look(), LOOK_MS).unref();
  }

  /**
   * Somebody is let in; `isLate` when something changed while the store was asked about them. Who comes with another
   * standing than before loses what they have open: it was opened under the former one.
   */
  letIn({ principal: { id }, standing }: Identity, askedAtMs: number, isLate: boolean): void {
    const before = this.#known.get(id);
    if (before !== undefined && before.verifiedAtMs > askedAtMs) return;
    this.#remember(id, standing, askedAtMs, isLate);
    if (before !== undefined && before.stamp !== standing.stamp) this.#options.onChange(id);
  }

  /** An account was changed on this node: tells whom it concerns, keys of the user as far as they are remembered. */
  changed(change: AccountChange): void {
    this.#epoch += 1;
    const concerned = new Set(['userId' in change ? `${USER}${change.userId}` : `${KEY}${change.keyId}`]);
    if ('userId' in change)
      for (const [id, { userId }] of this.#known.entries()) if (userId === change.userId) concerned.add(id);
    for (const id of concerned) this.#lose(id);
  }

  /** What is heard of the store. */
  hear(news: StoreChange): void {
    const isChange = this.#freshness.isChange(news);
    if (isChange) {
      this.#epoch += 1;
      for (const known of this.#known.values()) this.#freshness.markStale(known);
    }
    this.#freshness.hear(news, this.#options.now());
    if (isChange) void this.look();
  }

  /** Looks now, unless that is under way. Never rejects. */
  async look(): Promise<void> {
    if (this.#isLooking || this.#open === undefined) return;
    this.#isLooking = true;
    try {
      const doubtful = this.#doubtfulOf(this.#open());
      for (let first = 0; first < doubtful.length; first += MOST_FOUND)
        await this.#ask(doubtful.slice(first, first + MOST_FOUND));
    } catch (thrown) {
      // A store that does not answer is told by others; those who are left are asked about at the next look.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        this.#options.log.warn({ err: thrown }, 'who may keep what they have open cannot be looked up');
    } finally {
      this.#isLooking = false;
    }
  }

  close(): void {
    this.#open = undefined;
    clearInterval(this.#timer);
  }

  /** Those who have to be asked about; who has expired is told at once. */
  #doubtfulOf(open: Iterable<string>): string[] {
    const nowMs = this.#options.now();
    return [...open].filter((id) => {
      const known = this.#known.get(id);
      if (known === undefined) return id.startsWith(USER) || id.startsWith(KEY);
      if (known.endsAtMs > nowMs) return this.#freshness.judge(known, nowMs) === 'verify';
      this.#lose(id);
      return false;
    });
  }

  async #ask(ids: readonly string[]): Promise<void> {
    const epoch = this.#epoch;
    const askedAtMs = this.#options.now();
    const before = new Map(ids.map((id) => [id, this.#known.get(id)]));
    const found = await this.#standingsOf(ids).catch((thrown: unknown) => {
      for (const known of before.values())
        if (known !== undefined) this.#freshness.mayServe(known, this.#options.now());
      throw thrown;
    });
    for (const [id, known] of before) {
      if (this.#known.get(id) !== known) continue; // let in or changed meanwhile: the next look sees
      const standing = found.get(id);
      const isOther = known !== undefined && known.stamp !== standing?.stamp;
      if (standing === undefined || isOther) this.#lose(id);
      if (standing !== undefined) this.#remember(id, standing, askedAtMs, epoch !== this.#epoch);
    }
  }

  /** Of those who may come in. */
  async #standingsOf(ids: readonly string[]): Promise<ReadonlyMap<string, AccountStatus>> {
    const { accounts, now } = this.#options;
    const keys = await accounts.findApiKeys(idsBehind(KEY, ids));
    const named = [...idsBehind(USER, ids), ...keys.flatMap(({ ownerId }) => ownerId ?? [])];
    const users = await accounts.findUsers([...new Set(named)]);
    const active = new Map(users.filter(isActive).map((user) => [user.id, user]));
    const ofUsers = [...active.values()].map((user) => [`${USER}${user.id}`, userStatus(user)] as const);
    const ofKeys = keys
      .filter((key) => isOwned(key, active))
      .map((key) => [`${KEY}${key.id}`, keyStatus(key, active.get(key.ownerId ?? ''))] as const)
      .filter(([, { endsAtMs }]) => endsAtMs > now());
    return new Map([...ofUsers, ...ofKeys]);
  }

  #remember(id: string, standing: AccountStatus, verifiedAtMs: number, isStale: boolean): void {
    const staleSinceMs = isStale ? verifiedAtMs : undefined;
    this.#known.set(id, { ...standing, verifiedAtMs, staleSinceMs, retryAtMs: 0 });
  }

  #lose(id: string): void {
    this.#known.delete(id);
    this.#options.onChange(id);
  }
}

function idsBehind(kind: string, ids: readonly string[]): string[] {
  return ids.flatMap((id) => (id.startsWith(kind) ? id.slice(kind.length) : []));
}

function isOwned({ ownerId }: ApiKey, active: ReadonlyMap<string, User>): boolean {
  return ownerId === undefined || active.has(ownerId);
}
