// Ends tokens before they expire: a logout, or the end of the sign-in of a browser.

import type { EndedToken } from '../domain/accounts/account.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { type Clock, clockDoubt } from '../domain/time/clock.ts';
import type { AccountStore, Store } from '../persistence/store.ts';
import { isKey } from './accounts/api-keys.ts';
import type { Tokens } from './accounts/tokens.ts';
import type { ForeignTokens } from './credential-verifier.ts';
import { bearerOf, type Credentials } from './credentials.ts';
import { type AccessTokens, isAccessToken } from './grants/access-tokens.ts';
import type { Grants } from './grants/grants.ts';

interface TokenEndsOptions {
  readonly accounts: Pick<AccountStore, 'endToken' | 'changeUser'>;
  readonly tokens: Tokens;
  readonly clock: Clock;
  readonly serverTimeMs: Store['serverTimeMs'];
  readonly oauth?:
    | {
        readonly tokens: AccessTokens;
        readonly grants: Pick<Grants, 'revoke'>;
        /** Ends the sign-in of the browser that got this login token. */
        endSignIn(tokenId: string): Promise<unknown>;
      }
    | undefined;
  readonly issuers?: ForeignTokens | undefined;
  /** Called with the user whose login token has ended. */
  readonly onEnded: (userId: string) => void;
}

/** Ends tokens of logins, and the grants of access tokens. */
export class TokenEnds {
  readonly #options: TokenEndsOptions;
  readonly #doubt: () => Promise<string | undefined>;

  constructor(options: TokenEndsOptions) {
    this.#options = options;
    this.#doubt = clockDoubt(options.clock, options.serverTimeMs);
  }

  /**
   * Ends the token of verified credentials: on this node at once, on others within 10 s. An API key stays valid. When a user
   * has ended too many tokens, an update of its `credentialsChangedAt` ends all of them: the list stays short, and no ended
   * token becomes valid again. Throws DATABASE_UNAVAILABLE.
   */
  async end({ authorization }: Credentials): Promise<void> {
    const token = authorization === undefined ? undefined : bearerOf(authorization, this.#options.issuers);
    if (token === undefined || isKey(token)) return;
    const { tokens, oauth, issuers } = this.#options;
    // Only its issuer can end such a token.
    if (issuers?.has(token) === true) return;
    if (oauth !== undefined && isAccessToken(token)) {
      const { grantId, userId } = await oauth.tokens.read(token);
      return oauth.grants.revoke(grantId, userId);
    }
    const { userId, id, expiresAtMs } = await tokens.read(token);
    // First: if it fails, the caller can still log out again.
    await oauth?.endSignIn(id);
    await this.#endToken(userId, { id, expiresAtMs });
  }

  /** Ends the login token of a sign-in, as `end` does, then the sign-in: if it fails, its browser can still sign out again. */
  async endLoginToken(userId: string, token: EndedToken): Promise<void> {
    await this.#endToken(userId, token);
    await this.#options.oauth?.endSignIn(token.id);
  }

  async #endToken(userId: string, { id, expiresAtMs }: EndedToken): Promise<void> {
    const { accounts, clock, onEnded } = this.#options;
    const end = (nowMs: number) => accounts.endToken(userId, { id, expiresAtMs }, nowMs);
    try {
      // Expired ones are forgotten only where they are too many: a clock that is ahead would make them valid again.
      const isEnded = (await end(0)) || ((await this.#doubt()) === undefined && (await end(clock.wall())));
      if (!isEnded) {
        const at = new Date(clock.wall()).toISOString();
        await accounts.changeUser(userId, { credentialsChangedAt: at, updatedAt: at });
      }
    } catch (thrown) {
      // The tokens of a user end with the user, who was deleted meanwhile.
      if (!hasCode(thrown, 'USER_NOT_FOUND')) throw thrown;
    }
    onEnded(userId);
  }
}
