// The grants of MCP clients: which are there, and their end. The authorization server makes them.

import type { Grant } from '../../domain/accounts/grant.ts';
import { grantPrincipalId } from '../../domain/accounts/principal.ts';
import { grantNotFound } from '../../domain/errors/account-errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { oauthKey, readUndamaged } from '../../persistence/oauth-rows.ts';
import type { OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { KeyUse } from '../accounts/api-keys.ts';
import { grantOf } from './grant-rows.ts';

/** The most grants of one list, the newest ones. */
const MAX_GRANTS = 1_000;

interface GrantsOptions {
  readonly store: OAuthStore;
  readonly accounts: Pick<AccountStore, 'findUsers'>;
  readonly clock: Clock;
  /** Called with the id of the principal of each grant that ended here. */
  readonly onEnded: (principalId: string) => void;
  /** Called for each damaged row. */
  readonly warn: (line: string) => void;
}

export interface ShownGrant {
  readonly grant: Grant;
  readonly username: string;
}

/**
 * Finds, lists and revokes grants. A grant that has ended ends its access tokens, sessions and streams, at once on this
 * node and on the others with the next change of the store. Source: ADR 206.
 */
export class Grants {
  readonly #options: GrantsOptions;
  /** Writes the times of use once a minute. */
  readonly use: KeyUse;

  constructor(options: GrantsOptions) {
    this.#options = options;
    const { store, clock } = options;
    const touchApiKeys: AccountStore['touchApiKeys'] = (times) =>
      store.touch('grant', new Map([...times].map(([id, at]) => [oauthKey('grant', id), at])));
    this.use = new KeyUse({ touchApiKeys }, clock);
  }

  /** The grants with these ids that have not ended, without damaged ones. */
  async find(ids: readonly string[]): Promise<readonly Grant[]> {
    return this.#presentIn(await this.stored(ids));
  }

  /** The same, with those that have expired and whose row is there. */
  async stored(ids: readonly string[]): Promise<readonly Grant[]> {
    if (ids.length === 0) return [];
    const keys = ids.map((id) => oauthKey('grant', id));
    return this.#readable(await this.#options.store.find('grant', keys));
  }

  /** The grants, newest first, without damaged ones, at most MAX_GRANTS. `userId`: only the grants of this user. */
  async list(userId?: string): Promise<readonly ShownGrant[]> {
    await this.use.flush();
    const { store, accounts } = this.#options;
    const grants = this.#presentIn(this.#readable(await store.list({ kind: 'grant', userId }, MAX_GRANTS)));
    const users = await accounts.findUsers([...new Set(usersOf(grants))]);
    const names = new Map(users.map(({ id, username }) => [id, username]));
    return grants.flatMap((grant) => {
      const username = grant.subject?.name ?? names.get(grant.userId);
      return username === undefined ? [] : [{ grant, username }];
    });
  }

  /** `userId`: only a grant of this user; those of others are not found. Also ends a damaged one. GRANT_NOT_FOUND. */
  async revoke(id: string, userId?: string): Promise<void> {
    const [row] = await this.#options.store.find('grant', [oauthKey('grant', id)]);
    const { userId: owner, expiresAt = '' } = row ?? {};
    const isPresent = owner !== undefined && expiresAt > this.#now;
    if (!isPresent || (userId !== undefined && owner !== userId)) throw grantNotFound(id);
    await this.end({ grantId: id });
  }

  /** Ends all that a grant or a client has, its grants among them. False when there is nothing. */
  async end(filter: Pick<OAuthRow, 'grantId' | 'clientKey'>): Promise<boolean> {
    const { store, onEnded } = this.#options;
    const grants = await store.list({ ...filter, kind: 'grant' }, MAX_GRANTS);
    const isEnded = await store.end(filter);
    for (const { grantId, userId } of grants)
      if (grantId !== undefined && userId !== undefined) onEnded(grantPrincipalId(grantId, userId));
    return isEnded;
  }

  get #now(): string {
    return new Date(this.#options.clock.wall()).toISOString();
  }

  #readable(rows: readonly OAuthRow[]): readonly Grant[] {
    return readUndamaged(rows, grantOf, this.#options.warn).flatMap((grant) => grant ?? []);
  }

  #presentIn(grants: readonly Grant[]): readonly Grant[] {
    const now = this.#now;
    return grants.filter(({ expiresAt }) => expiresAt > now);
  }
}

/** The users of grants that have an account. */
export function usersOf(grants: readonly Grant[]): readonly string[] {
  return grants.flatMap(({ userId, subject }) => (subject === undefined ? userId : []));
}
