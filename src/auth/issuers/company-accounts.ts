// Accounts of users who sign in at an identity provider.

import { isDeepStrictEqual } from 'node:util';
import type { GroupRole } from '../../config/group-roles.ts';
import type { ProviderSetting } from '../../config/provider-settings.ts';
import {
  type DefinedRoles,
  isBuiltIn,
  NO_PASSWORD,
  ROLE_SCOPES,
  scopesOfUser,
  type User,
} from '../../domain/accounts/account.ts';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import {
  accountDisabled,
  linkedMeanwhile,
  linkedToAnother,
  nameOfLocalAccount,
  noRoleForGroups,
  notLinked,
  unknownProvider,
} from '../../domain/errors/account-errors.ts';
import { asGatewayError, hasCode } from '../../domain/errors/errors.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Clock, clockDoubt, DAY_MS, isRecent } from '../../domain/time/clock.ts';
import { MAX_OAUTH_ROWS, type OAuthRow, type OAuthStore } from '../../persistence/oauth-store.ts';
import type { AccountStore, Store } from '../../persistence/store.ts';
import { untilDatabaseAnswers } from '../../persistence/until-database-answers.ts';
import { untilTaken } from '../../persistence/until-taken.ts';
import { newUser } from '../accounts/accounts.ts';
import { scopesOfRole } from '../principals.ts';
import { type Claims, emailIn, hasRights, roleOfClaims, usernameIn } from './claims.ts';
import { type IdentityProvider, type ProviderAnswer, ProviderFailure } from './identity-provider.ts';
import {
  type CompanyIdentity,
  identityKey,
  readIdentity,
  rowOfIdentity,
  type StoredIdentity,
} from './identity-rows.ts';

interface CompanyAccountsOptions {
  readonly clock: Clock;
  /** The clock of the database. Default: it has none of its own. */
  readonly serverTimeMs?: Store['serverTimeMs'];
  readonly store: OAuthStore;
  readonly accounts: Pick<AccountStore, 'findUsers' | 'insertUserWithIdentity' | 'changeUser'>;
  readonly providers: readonly Pick<IdentityProvider, 'setting' | 'refresh'>[];
  /** Whether refresh tokens are encrypted; else they are not kept. */
  readonly keepsSecrets: boolean;
  readonly warn: (line: string) => void;
  /** Called with the id of the principal of an account whose rights changed. */
  readonly onChange: (principalId: string) => void;
  /** The roles of the settings. Default: there are none. */
  readonly roles?: DefinedRoles | undefined;
}

/** The content of an identity assertion. */
interface Vouched extends Pick<ProviderAnswer, 'subject' | 'claims'> {
  /** The time of issue, in ms since 1970. */
  readonly issuedAtMs: number;
}

/** The provider is asked again after this time, while the account is used. */
const CONFIRM_AGAIN_MS = 15 * 60_000;
/** The time for which an account stays enabled while its provider cannot be asked. */
const UNREACHABLE_MS = DAY_MS;
const ASKING_MS = 30_000;
const MAX_REMEMBERED = 10_000;

/**
 * Signs users of identity providers in, and links their accounts. Accounts are found by issuer and subject, never by a
 * name or an address, which a provider may give to another user later. Source: ADR 214.
 */
export class CompanyAccounts {
  /** The time at which this node last looked at an account, by user and the monotonic clock. */
  readonly #looked = new LruMap<number>(MAX_REMEMBERED);
  readonly #asking = new Map<string, Promise<void>>();
  readonly #options: CompanyAccountsOptions;
  readonly #doubt: () => Promise<string | undefined>;
  /** The last time at which the wall clock was in doubt, by the monotonic one. */
  #doubtedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: CompanyAccountsOptions) {
    this.#options = options;
    const { clock, serverTimeMs = async () => undefined } = options;
    this.#doubt = clockDoubt(clock, serverTimeMs);
  }

  /**
   * The account of a user who has just signed in at the provider, with the rights that the provider gives now; it
   * is made at the first sign-in. Throws INSUFFICIENT_PERMISSIONS, DUPLICATE_USERNAME, LAST_ADMIN, DATABASE_UNAVAILABLE.
   */
  signIn(setting: ProviderSetting, answer: ProviderAnswer): Promise<User> {
    return untilTaken(() => this.#signedIn(setting, answer));
  }

  /**
   * Resolves with undefined when an admin has ended the link, or deleted the account, meanwhile, or another sign-in has made
   * it.
   */
  async #signedIn(
    setting: ProviderSetting,
    { subject, claims, refreshToken }: ProviderAnswer,
  ): Promise<User | undefined> {
    const role = roleOfClaims(setting, claims, this.#options.roles);
    const identity = { issuer: setting.issuer, subject };
    const { keepsSecrets, clock } = this.#options;
    const stored: StoredIdentity = {
      ...identity,
      sub: String(claims.sub),
      confirmedAtMs: clock.wall(),
      ...(keepsSecrets ? { refreshToken } : {}),
    };
    const row = await this.#rowOfIdentity(identity);
    const known = await this.#userOf(row);
    if (known === undefined) return this.#create(setting, stored, claims, role, row?.version ?? 0);
    const user = await this.#enabledAgain(known);
    return (await this.#keep(stored, user)) ? this.#update(user, setting, claims, role) : undefined;
  }

  /**
   * The answer of a provider about a user in an identity assertion, and, once that is used, the account. An assertion with
   * the claims from which the role follows counts as a sign-in, unless the provider has said something since; one without
   * them is only for existing accounts. Throws INSUFFICIENT_PERMISSIONS when the user may not sign in, or has no account that
   * can be used.
   */
  async vouched(setting: ProviderSetting, { subject, claims, issuedAtMs }: Vouched) {
    const identity = { issuer: setting.issuer, subject };
    const role = hasRights(setting, claims) ? roleOfClaims(setting, claims, this.#options.roles) : undefined;
    const row = await this.#rowOfIdentity(identity);
    const known = await this.#userOf(row);
    const stored: Partial<StoredIdentity> = row === undefined ? {} : readIdentity(row);
    const { confirmedAtMs = 0, sleptAt = '1970-01-01' } = stored;
    // Assertions have whole seconds.
    const isLate = issuedAtMs + 999 < Math.max(confirmedAtMs, Date.parse(sleptAt));
    if (known === undefined || row === undefined) {
      if (role === undefined)
        throw noRoleForGroups(
          `The user of ${setting.label} has no account here, and the assertion does not say its role: sign in once in a browser.`,
        );
      return {
        scopes: scopesOfRole(role, this.#options.roles),
        account: () => this.signIn(setting, { subject, claims }),
      };
    }
    if (role === undefined || isLate) {
      if (!known.isActive) throw accountDisabled(known.username);
      const own = scopesOfUser(known, this.#options.roles);
      const scopes =
        role === undefined
          ? own
          : own.filter((scope) => scopesOfRole(role, this.#options.roles).includes(scope));
      const account = async () => {
        await this.confirm(known.id, CONFIRM_AGAIN_MS);
        const user = await this.#find(identity);
        if (user?.isActive !== true) throw accountDisabled(known.username);
        return user;
      };
      return { scopes, account };
    }
    const account = async () => {
      const user = await this.#enabledAgain(known);
      const { sleptAt: _, ...kept } = stored;
      const saidAtMs = Math.max(issuedAtMs, confirmedAtMs);
      const now = { ...kept, ...identity, sub: String(claims.sub), confirmedAtMs: saidAtMs };
      // The row stays as it is when another node asks the provider at this moment: its refresh token would be lost.
      const isKept = await this.#options.store.replace(rowOfIdentity(now, user), row.version);
      if (!isKept && (await this.#find(identity))?.id !== user.id) throw accountDisabled(user.username);
      return this.#update(user, setting, claims, role);
    };
    return { scopes: scopesOfRole(role, this.#options.roles), account };
  }

  /**
   * Links the account: from now on this user of the provider signs in to it, with the rights that the provider gives; an
   * earlier link of the account ends. Throws VALIDATION_ERROR for another issuer, and for a user who has an account
   * already.
   */
  async link(user: User, identity: CompanyIdentity): Promise<void> {
    const { store, providers } = this.#options;
    if (!providers.some(({ setting }) => setting.issuer === identity.issuer)) throw unknownProvider();
    const owner = await this.#find(identity);
    if (owner?.id === user.id) return;
    if (owner !== undefined) throw linkedToAnother(owner.username);
    const wasLinked = await this.#endLink(user);
    const linking = store.replace(rowOfIdentity(identity, user), 0);
    if (!(await (wasLinked ? restOfChange(linking) : linking))) throw linkedToAnother();
    if ((await restOfChange(store.count({ kind: 'identity', userId: user.id }))) < 2) return;
    await restOfChange(store.delete('identity', [identityKey(identity)]));
    throw linkedMeanwhile(user.username);
  }

  /**
   * The account is one of this gateway only, and the tokens and grants of the user end; keys stay. Throws NOT_FOUND without a
   * link.
   */
  async unlink(user: User): Promise<void> {
    if (!(await this.#endLink(user))) throw notLinked(user.username);
  }

  /** False without a link. The identity ends last: while it is there, what failed can be repeated. */
  async #endLink(user: User): Promise<boolean> {
    const { store } = this.#options;
    const identity = { kind: 'identity', userId: user.id } as const;
    if ((await store.count(identity)) === 0) return false;
    await this.#endSignIns(user);
    await restOfChange(store.end(identity));
    // Those of a sign-in meanwhile.
    await restOfChange(this.#endSignIns(user));
    return true;
  }

  async #endSignIns(user: User): Promise<void> {
    const { accounts, onChange, clock } = this.#options;
    const updatedAt = new Date(clock.wall()).toISOString();
    await accounts.changeUser(user.id, { credentialsChangedAt: updatedAt, updatedAt });
    await restOfChange(this.#endGrants(user)).finally(() => onChange(userPrincipalId(user.id)));
  }

  async #endGrants({ id: userId }: User): Promise<void> {
    const { store } = this.#options;
    const grants = await store.list({ kind: 'grant', userId }, MAX_OAUTH_ROWS);
    for (const { grantId } of grants) if (grantId !== undefined) await store.end({ grantId });
    // There are further grants, without which their tokens are invalid.
    if (grants.length === MAX_OAUTH_ROWS) await store.end({ kind: 'grant', userId });
  }

  /** Asks the provider again in the background, unless this node did so within the last 15 min. Costs a look-up. */
  used(userId: string): void {
    const { clock, accounts, warn } = this.#options;
    const nowMs = clock.now();
    if (nowMs - (this.#looked.get(userId) ?? Number.NEGATIVE_INFINITY) < CONFIRM_AGAIN_MS) return;
    this.#looked.set(userId, nowMs);
    this.confirm(userId, CONFIRM_AGAIN_MS).catch(async (thrown: unknown) => {
      this.#looked.delete(userId);
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) return;
      // A database that fails at this moment leaves the id.
      const [user] = await accounts.findUsers([userId]).catch(() => []);
      warn(
        `the rights of the user ${user?.username ?? userId} cannot be read again: ${asGatewayError(thrown).message}`,
      );
    });
  }

  /**
   * Asks the provider for the present rights of the user, unless it said so within the last `freshMs`. A user who has left,
   * or has no role any more, is disabled until the next sign-in; so is one whose provider cannot be asked for too
   * long. Accounts of this gateway are left alone.
   */
  confirm(userId: string, freshMs = 0): Promise<void> {
    const asking =
      this.#asking.get(userId) ?? this.#confirm(userId, freshMs).finally(() => this.#asking.delete(userId));
    this.#asking.set(userId, asking);
    return asking;
  }

  async #confirm(userId: string, freshMs: number): Promise<void> {
    const { store, accounts, providers, clock } = this.#options;
    const [row] = await store.list({ kind: 'identity', userId }, 1);
    const [user] = row === undefined ? [] : await accounts.findUsers([userId]);
    if (row === undefined || user?.isActive !== true) return;
    const { askedUntilMs = 0, ...read } = readIdentity(row);
    const { sub, refreshToken, confirmedAtMs: readAtMs } = read;
    if (sub === undefined || readAtMs === undefined) return;
    const nowMs = clock.wall();
    if (isRecent(readAtMs, freshMs, nowMs) || isRecent(askedUntilMs - ASKING_MS, ASKING_MS, nowMs)) return;
    const isClockSure = await this.#isClockSure();
    // A clock that was ahead prolongs nothing: its time is replaced by the present one.
    const stored = { ...read, confirmedAtMs: Math.min(readAtMs, nowMs) };
    const asked: StoredIdentity = { ...stored, askedUntilMs: nowMs + ASKING_MS };
    const unconfirmedMs = isClockSure ? nowMs - stored.confirmedAtMs : 0;
    const provider = providers.find(({ setting }) => setting.issuer === stored.issuer);
    if (provider === undefined || refreshToken === undefined) {
      const isOver = unconfirmedMs > (provider?.setting.sessionMs ?? UNREACHABLE_MS);
      if (!isOver && stored.confirmedAtMs === readAtMs) return;
      const next = isOver ? asked : stored;
      const isTaken = await store.replace(rowOfIdentity(next, user), row.version);
      // By one node: the identity has the time of that change, by which a sign-in knows that it was not an admin's.
      if (isOver && isTaken) await this.#disable(user, stored);
      return;
    }
    if (!(await store.replace(rowOfIdentity(asked, user), row.version))) return;
    let version = row.version + 1;
    let renewed = refreshToken;
    try {
      const said = await provider.refresh(refreshToken, sub, (next) => {
        renewed = next;
      });
      if (said.subject !== stored.subject)
        throw new ProviderFailure('it names another user', { isOver: true });
      // First: the earlier one may be used up.
      const next = { ...stored, refreshToken: said.refreshToken, confirmedAtMs: nowMs };
      const kept = await this.#keepNext(next, user, refreshToken, version);
      if (kept === undefined) return;
      version = kept;
      const role = roleOfClaims(provider.setting, said.claims, this.#options.roles);
      await untilDatabaseAnswers(clock, () => this.#update(user, provider.setting, said.claims, role));
    } catch (thrown) {
      const isOut =
        thrown instanceof ProviderFailure
          ? thrown.isOver || unconfirmedMs > UNREACHABLE_MS
          : hasCode(thrown, 'INSUFFICIENT_PERMISSIONS') || hasCode(thrown, 'LAST_ADMIN');
      if (isOut) {
        const [present] = await store.list({ kind: 'identity', userId }, 1);
        return present?.version === version ? this.#disable(user, stored) : undefined;
      }
      if (!(thrown instanceof ProviderFailure)) throw thrown;
      await this.#keepNext({ ...stored, refreshToken: renewed }, user, refreshToken, version);
    }
  }

  /**
   * Stores the identity in its row of this version, and resolves with the new version; with undefined when a sign-in or another
   * node has stored another refresh token than `used` since, which is newer. An assertion, and the question of another node,
   * leave the one that is used up now.
   */
  async #keepNext(next: StoredIdentity, user: User, used: string, version: number) {
    const { store, clock } = this.#options;
    let before = version;
    let { confirmedAtMs = 0 } = next;
    const kept = await untilTaken(async () => {
      const own = rowOfIdentity({ ...next, confirmedAtMs }, user);
      if (await untilDatabaseAnswers(clock, () => store.replace(own, before))) return before + 1;
      const present = await untilDatabaseAnswers(clock, () => this.#rowOfIdentity(next));
      const said = present?.userId === user.id ? readIdentity(present) : undefined;
      if (present === undefined || said?.refreshToken !== used) return null;
      before = present.version;
      confirmedAtMs = Math.max(confirmedAtMs, Math.min(said.confirmedAtMs ?? 0, clock.wall()));
      return undefined;
    });
    return kept ?? undefined;
  }

  /** False in the time after a doubt, too, in which other accounts are looked at: see `clockDoubt`. */
  async #isClockSure(): Promise<boolean> {
    const { now } = this.#options.clock;
    if ((await this.#doubt()) !== undefined) this.#doubtedAtMs = now();
    return now() - this.#doubtedAtMs >= CONFIRM_AGAIN_MS;
  }

  /** Ends all that the account has, its keys included, until the next sign-in. */
  async #disable(user: User, stored: StoredIdentity): Promise<void> {
    const { accounts, onChange, warn, clock } = this.#options;
    const sleptAt = new Date(clock.wall()).toISOString();
    // First: an account that only an admin could enable again is the lesser harm.
    await accounts.changeUser(user.id, { isActive: false, updatedAt: sleptAt });
    onChange(userPrincipalId(user.id));
    const { refreshToken: _, ...rest } = stored;
    await this.#keep({ ...rest, sleptAt }, user);
    warn(`the user ${user.username} is disabled until the next sign-in at ${stored.issuer}`);
  }

  /** Stores the identity, and replaces an earlier one. False when the identity is not that of the account any more. */
  #keep(identity: StoredIdentity, user: User): Promise<boolean> {
    return untilTaken(async () => {
      const row = await this.#rowOfIdentity(identity);
      if (row?.userId !== user.id) return false;
      const isTaken = await this.#options.store.replace(rowOfIdentity(identity, user), row.version);
      return isTaken || undefined;
    });
  }

  /** Throws INSUFFICIENT_PERMISSIONS for an account that an admin has disabled, or changed while it was disabled. */
  async #enabledAgain(user: User): Promise<User> {
    if (user.isActive) return user;
    const { store, accounts, onChange, clock } = this.#options;
    const [row] = await store.list({ kind: 'identity', userId: user.id }, 1);
    const sleptAt = row && readIdentity(row).sleptAt;
    if (sleptAt === undefined || user.updatedAt !== sleptAt) throw accountDisabled(user.username);
    const updatedAt = new Date(clock.wall()).toISOString();
    const enabled = await accounts.changeUser(user.id, { isActive: true, updatedAt });
    onChange(userPrincipalId(user.id));
    return enabled;
  }

  async #find(identity: CompanyIdentity): Promise<User | undefined> {
    return this.#userOf(await this.#rowOfIdentity(identity));
  }

  async #rowOfIdentity(identity: CompanyIdentity): Promise<OAuthRow | undefined> {
    const [row] = await this.#options.store.find('identity', [identityKey(identity)]);
    return row;
  }

  async #userOf(row: OAuthRow | undefined): Promise<User | undefined> {
    if (row?.userId === undefined) return undefined;
    const [user] = await this.#options.accounts.findUsers([row.userId]);
    return user;
  }

  /**
   * Makes the account together with its identity. `version`: that of the remaining row of a deleted account. Undefined when
   * another sign-in of the same user was first.
   */
  async #create(
    setting: ProviderSetting,
    identity: StoredIdentity,
    claims: Claims,
    role: GroupRole,
    version: number,
  ): Promise<User | undefined> {
    const { accounts, clock } = this.#options;
    const username = usernameIn(setting, claims);
    const email = emailIn(setting, claims) ?? `${username.replaceAll('@', '.')}@localhost`;
    const user = newUser({ username, email, ...rightsOf(role) }, NO_PASSWORD, clock.wall());
    try {
      const row = rowOfIdentity(identity, user);
      return (await accounts.insertUserWithIdentity(user, row, version)) ? user : undefined;
    } catch (thrown) {
      if (!hasCode(thrown, 'DUPLICATE_USERNAME')) throw thrown;
      if ((await this.#find(identity)) !== undefined) return undefined;
      throw nameOfLocalAccount(username, identity.issuer, identity.subject);
    }
  }

  async #update(user: User, setting: ProviderSetting, claims: Claims, role: GroupRole): Promise<User> {
    const { accounts, onChange, clock } = this.#options;
    const email = emailIn(setting, claims) ?? user.email;
    const rights = rightsOf(role);
    const { scopes, templates, views, tools } = rights;
    const isSame =
      rights.role === user.role &&
      email === user.email &&
      isDeepStrictEqual(
        [scopes, templates, views, tools],
        [user.scopes ?? null, user.templates ?? null, user.views ?? null, user.tools ?? null],
      );
    if (isSame) return user;
    const updatedAt = new Date(clock.wall()).toISOString();
    const changed = await accounts.changeUser(user.id, { ...rights, email, updatedAt });
    onChange(userPrincipalId(user.id));
    return changed;
  }
}

/** Rights in the form in which they are stored: null where the account has all. */
function rightsOf({ role, scopes, templates, views, tools }: GroupRole) {
  const isLimited = scopes !== undefined && (!isBuiltIn(role) || scopes.length < ROLE_SCOPES[role].length);
  return {
    role,
    scopes: isLimited ? scopes : null,
    templates: templates ?? null,
    views: views ?? null,
    tools: tools ?? null,
  };
}
