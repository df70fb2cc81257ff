// The grants of MCP clients: which are there, and their end. The authorization server makes them. A grant that has
// ended ends its access tokens, sessions and streams, at once on this node and on the others with the next change
// of the store. Source: ADR 206.

import { grantPrincipalId } from '../../domain/accounts/account.ts';
import type { Grant } from '../../domain/accounts/grant.ts';
import { grantNotFound } from '../../domain/errors/account-errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { oauthKey } from '../../persistence/oauth-rows.ts';
import type { OAuthStore } from '../../persistence/oauth-store.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { KeyUse } from '../accounts/api-keys.ts';
import { grantOf } from './grant-rows.ts';

/** Most grants of one list, the newest. */
const MAX_GRANTS = 1_000;

interface GrantsOptions {
  readonly store: OAuthStore;
  readonly accounts: Pick<AccountStore, 'findUsers'>;
  readonly wall: Clock['wall'];
  /** Called with the id of the principal of each grant that ended here. */
  readonly onEnded: (principalId: string) => void;
}

export interface ShownGrant {
  readonly grant: Grant;
  readonly username: string;
}

export class Grants {
  readonly #options: GrantsOptions;
  /** Writes the times of use once a minute. */
  readonly use: KeyUse;

  constructor(options: GrantsOptions) {
    this.#options = options;
    const { store } = options;
    this.use = new KeyUse({
      touchApiKeys: (times) =>
        store.touch('grant', new Map([...times].map(([id, at]) => [oauthKey('grant', id), at]))),
    });
  }

  /** The grants with these ids that have not ended. */
  async find(ids: readonly string[]): Promise<readonly Grant[]> {
    if (ids.length === 0) return [];
    const { store, wall } = this.#options;
    const rows = await store.find(
      'grant',
      ids.map((id) => oauthKey('grant', id)),
    );
    const now = new Date(wall()).toISOString();
    return rows.flatMap((row) => grantOf(row) ?? []).filter(({ expiresAt }) => expiresAt > now);
  }

  /** Newest first, at most MAX_GRANTS. `userId`: only those of this user. */
  async list(userId?: string): Promise<readonly ShownGrant[]> {
    await this.use.flush();
    const { store, accounts, wall } = this.#options;
    const rows = await store.list({ kind: 'grant', userId }, MAX_GRANTS);
    const now = new Date(wall()).toISOString();
    const grants = rows.flatMap((row) => grantOf(row) ?? []).filter(({ expiresAt }) => expiresAt > now);
    const users = await accounts.findUsers([...new Set(usersOf(grants))]);
    const names = new Map(users.map(({ id, username }) => [id, username]));
    return grants.flatMap((grant) => {
      const username = grant.subject?.name ?? names.get(grant.userId);
      return username === undefined ? [] : [{ grant, username }];
    });
  }

  /** `userId`: only a grant of this user; those of others are not found. GRANT_NOT_FOUND. */
  async revoke(id: string, userId?: string): Promise<void> {
    const [grant] = await this.find([id]);
    if (grant === undefined || (userId !== undefined && grant.userId !== userId)) throw grantNotFound(id);
    await this.#options.store.end({ grantId: id });
    this.#options.onEnded(grantPrincipalId(id, grant.userId));
  }
}

/** The users of grants that have an account. */
export function usersOf(grants: readonly Grant[]): readonly string[] {
  return grants.flatMap(({ userId, subject }) => (subject === undefined ? userId : []));
}
