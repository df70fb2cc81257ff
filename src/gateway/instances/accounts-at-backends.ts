// The accounts of users at backends that want OAuth, as the parts of a gateway need them: the addresses at which
// they are connected, the transports that use them, and the notices when one is connected. Source: ADR 220, ADR
// 221.

import { filter, map, type Observable, Subject } from 'rxjs';
import type { DefinedRoles } from '../../domain/accounts/account.ts';
import { userIdIn } from '../../domain/accounts/principal.ts';
import { type ConnectionChange, isResourceOf, SHARED } from '../../domain/instances/account-connection.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { listNotice, type Notification } from '../../domain/mcp/client.ts';
import { NOTICED_LISTS } from '../../domain/mcp/mcp.ts';
import type { AccountStore } from '../../persistence/store.ts';
import type { BackendAccount, BearerTokens } from '../../transports/backend-account.ts';
import type { Transport } from '../../transports/transport.ts';
import { ConnectLinks, mayConnect } from '../../vault/connect-links.ts';
import { LazyVault } from '../../vault/lazy-vault.ts';
import type { AccountTarget } from '../../vault/oauth-backends.ts';
import type { Vault, VaultOptions } from '../../vault/vault.ts';

/** A notice for the clients of one user, at one template. */
export interface UserNotice {
  readonly template: string;
  readonly userId: string;
  readonly notice: Notification;
}

interface AccountsAtBackendsOptions extends Omit<VaultOptions, 'changes$' | 'secretOf'> {
  readonly fleet: () => Instances;
  readonly accounts: Pick<AccountStore, 'findUsers'>;
  readonly roles?: DefinedRoles | undefined;
}

/** The needed part of the fleet, whose own types would bring the types of its actors into those of the package. */
interface Instances {
  readonly templates: {
    readonly names: readonly string[];
    group(template: string): {
      readonly refs: readonly {
        readonly definition: InstanceDefinition;
      }[];
    };
  };
  find(template: string, id: string): { readonly definition: InstanceDefinition } | undefined;
}

/** Owns the vault, and connects it with instances, calls and endpoints, until `close`. */
export class AccountsAtBackends {
  readonly connectLinks: ConnectLinks;
  readonly #vault: LazyVault;
  readonly #notices$ = new Subject<UserNotice>();
  readonly #options: AccountsAtBackendsOptions;

  constructor(options: AccountsAtBackendsOptions) {
    this.#options = options;
    const { store, clock, address } = options;
    this.#vault = new LazyVault({ ...options, secretOf: this.#secretOf });
    this.connectLinks = new ConnectLinks({
      store,
      clock,
      base: () => address.issuer,
      isConnected: async ({ template, instanceId, owner }) => {
        const target = this.targetOf(template, instanceId);
        return target !== undefined && (await this.open()).isConnected(target, owner);
      },
    });
    this.connectLinks.connected$.subscribe(({ template, owner, elicitationIds }) => {
      for (const list of NOTICED_LISTS) this.#notify(template, owner, listNotice(list));
      for (const elicitationId of elicitationIds)
        this.#notify(template, owner, {
          kind: 'notification',
          method: 'notifications/elicitation/complete',
          params: { elicitationId },
        });
    });
  }

  get notices$(): Subject<UserNotice> {
    return this.#notices$;
  }

  get changes$(): Observable<ConnectionChange> {
    return this.#vault.changes$;
  }

  open(): Promise<Vault> {
    return this.#vault.open();
  }

  targetOf(template: string, instanceId: string): AccountTarget | undefined {
    const ref = this.#options.fleet().find(template, instanceId);
    return ref && targetIn(ref.definition);
  }

  /** The secret of a client that an admin gave to an instance at this endpoint. */
  readonly #secretOf = (wanted: string, clientId: string): string | undefined => {
    const fleet = this.#options.fleet();
    const refs = fleet.templates.names.flatMap((template) => fleet.templates.group(template).refs);
    const found = refs.find(
      ({ definition: { endpoint, auth } }) => endpoint === wanted && auth?.clientId === clientId,
    );
    return found?.definition.auth?.clientSecret;
  };

  templatesAt(resource: string): readonly string[] {
    const fleet = this.#options.fleet();
    return fleet.templates.names.filter((template) =>
      fleet.templates.group(template).refs.some(({ definition: { auth, endpoint } }) => {
        return auth !== undefined && endpoint !== undefined && isResourceOf(resource, endpoint);
      }),
    );
  }

  /**
   * The templates that are used with an account which this user has connected. The vault is loaded only where a
   * server wants one.
   */
  async connectedTemplates(userId: string): Promise<readonly string[]> {
    const fleet = this.#options.fleet();
    const endpointsOf = (template: string) =>
      fleet.templates.group(template).refs.flatMap(({ definition: { auth, endpoint } }) => {
        return auth?.who === 'user' && endpoint !== undefined ? [endpoint] : [];
      });
    const wanting = fleet.templates.names.filter((template) => endpointsOf(template).length > 0);
    if (wanting.length === 0) return [];
    const own = (await (await this.open()).list(userId)).filter(({ state }) => state === 'connected');
    return wanting.filter((template) =>
      own.some(({ resource }) => endpointsOf(template).some((endpoint) => isResourceOf(resource, endpoint))),
    );
  }

  /** The account that an instance with `auth` uses for all its callers. */
  async sharedAccount(definition: InstanceDefinition): Promise<BackendAccount> {
    const vault = await this.open();
    const addressFor = (callerId: string) => this.#sharedAddressFor(definition, callerId);
    return { ...vault.account(wantedTarget(definition)), addressFor };
  }

  /** The transport of an instance that is used with the account of each user. */
  async openFor(
    definition: InstanceDefinition,
    openWith: (tokens: BearerTokens, signal: AbortSignal) => Promise<Transport>,
  ): Promise<Transport> {
    const { openUserTransport } = await import('../../transports/user-transport.ts');
    const target = wantedTarget(definition);
    const vault = await this.open();
    const { template, id: instanceId } = definition;
    const goalOf = (owner: string) => ({ template, instanceId, owner });
    return openUserTransport({
      definition,
      clock: this.#options.clock,
      open: (userId, signal) => openWith(vault.tokens(target, userId), signal),
      probe: () => vault.check(target),
      connecting: {
        linkFor: (userId) => this.connectLinks.linkFor(goalOf(userId)),
        whenConnected: (userId, withinMs) => this.connectLinks.whenConnected(goalOf(userId), withinMs),
      },
      changed$: this.#vault.changes$.pipe(
        filter(({ type }) => type !== 'refresh-failed'),
        map(({ owner }) => owner),
      ),
      onNotice: (userId, notice) => this.#notify(template, userId, notice),
    });
  }

  /**
   * The address at which the user of this caller connects the shared account; undefined when that takes another user.
   * Throws DATABASE_UNAVAILABLE.
   */
  async #sharedAddressFor(
    { template, id }: InstanceDefinition,
    callerId: string,
  ): Promise<string | undefined> {
    const userId = userIdIn(callerId);
    if (userId === undefined) return undefined;
    const { accounts, roles } = this.#options;
    const [user] = await accounts.findUsers([userId]);
    const goal = { template, instanceId: id, owner: SHARED };
    if (user?.isActive !== true || !mayConnect(user, goal, roles)) return undefined;
    return (await this.connectLinks.linkFor(goal)).url;
  }

  stored(): Promise<void> {
    return this.#vault.stored();
  }

  close(): void {
    this.connectLinks.close();
    this.#notices$.complete();
  }

  #notify(template: string, userId: string, notice: UserNotice['notice']): void {
    this.#notices$.next({ template, userId, notice });
  }
}

function targetIn({ template, id, endpoint, auth }: InstanceDefinition): AccountTarget | undefined {
  return endpoint === undefined || auth === undefined ? undefined : { template, id, endpoint, auth };
}

function wantedTarget(definition: InstanceDefinition): AccountTarget {
  const target = targetIn(definition);
  if (target === undefined) throw new Error('the instance wants no account');
  return target;
}
