// The sign-in of a browser, shared by the consent page and the pages for connections: 12 h, a row whose id is in a cookie. The cookie
// goes to these pages only, and cannot call the API.

import { createHmac, randomBytes } from 'node:crypto';
import { oauthKey } from '../../auth/oauth-rows.ts';
import type { User } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { AccountStore, OAuthStore } from '../../persistence/store.ts';

export interface SignedIn {
  readonly user: User;
  /** Ms since 1970. */
  readonly atMs: number;
  /** For forms of this sign-in: a page of another origin cannot know it. */
  readonly formToken: string;
}

const SECONDS = 12 * 3_600;
const PATHS = ['/oauth', '/connections'];
const ID = /^[\w-]{43}$/;

export interface SignInsOptions extends Pick<Clock, 'wall'> {
  readonly store: Pick<OAuthStore, 'find' | 'save' | 'delete'>;
  readonly accounts: Pick<AccountStore, 'findUsers'>;
  /** The address of the gateway. */
  readonly issuer: () => string;
}

export class SignIns {
  readonly #options: SignInsOptions;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  /** Makes a sign-in of the user; resolves with the headers that set its cookies, as `[name, value, ...]`. */
  async begin(user: User): Promise<string[]> {
    const { store, wall } = this.#options;
    const id = randomBytes(32).toString('base64url');
    await store.save({
      kind: 'sign-in',
      key: oauthKey('sign-in', id),
      userId: user.id,
      createdAt: new Date(wall()).toISOString(),
      expiresAt: new Date(wall() + SECONDS * 1_000).toISOString(),
      value: JSON.stringify({ credentialsChangedAt: user.credentialsChangedAt }),
    });
    return this.#cookies(id, SECONDS);
  }

  /** Undefined without one, when it is over, and when the account has changed since. */
  async find(cookies: string | undefined): Promise<SignedIn | undefined> {
    const id = this.#idIn(cookies);
    if (id === undefined) return undefined;
    const { store, accounts, wall } = this.#options;
    const [row] = await store.find('sign-in', [oauthKey('sign-in', id)]);
    if (row?.userId === undefined || Date.parse(row.expiresAt ?? '') <= wall()) return undefined;
    const [user] = await accounts.findUsers([row.userId]);
    const { credentialsChangedAt } = JSON.parse(row.value) as { credentialsChangedAt: string };
    if (user?.isActive !== true || user.credentialsChangedAt !== credentialsChangedAt) return undefined;
    return { user, atMs: Date.parse(row.createdAt), formToken: formTokenOf(id) };
  }

  /** Resolves with the headers that remove its cookies. */
  async end(cookies: string | undefined): Promise<string[]> {
    const id = this.#idIn(cookies);
    if (id !== undefined) await this.#options.store.delete('sign-in', [oauthKey('sign-in', id)]);
    return this.#cookies('', 0);
  }

  /** Cookies do not know ports: another gateway of this machine has another name. */
  get #name(): string {
    const { protocol, port } = new URL(this.#options.issuer());
    return protocol === 'https:' ? '__Secure-stagedoor_sign_in' : `stagedoor_sign_in_${port || '80'}`;
  }

  #cookies(id: string, seconds: number): string[] {
    const secure = this.#options.issuer().startsWith('https:') ? '; Secure' : '';
    return PATHS.flatMap((path) => [
      'Set-Cookie',
      `${this.#name}=${id}; HttpOnly; SameSite=Lax; Path=${path}; Max-Age=${seconds}${secure}`,
    ]);
  }

  /** Undefined for two cookies of this name: another site may have set either of them. */
  #idIn(cookies = ''): string | undefined {
    const values = cookies
      .split(';')
      .map((cookie) => cookie.trim())
      .filter((cookie) => cookie.startsWith(`${this.#name}=`))
      .map((cookie) => cookie.slice(this.#name.length + 1));
    const [id, other] = values;
    return id !== undefined && other === undefined && ID.test(id) ? id : undefined;
  }
}

function formTokenOf(id: string): string {
  return createHmac('sha256', id).update('stagedoor form').digest('base64url');
}
