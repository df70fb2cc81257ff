// The connected accounts at servers that want one: where one is missing, which are connected, and their end. A page of the gateway, outside the
// console, leads through the sign-in at the server. Users see their own accounts, administrators all.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { account, isAdmin, isOpen, mayWrite } from '../account.ts';
import { change, get } from '../api.ts';
import { day, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { useLoaded } from '../parts/load.ts';
import { attempt } from '../parts/notices.tsx';
import { Badge, type Look, waitsForAccount } from '../parts/state.tsx';
import { Empty, Reading } from '../parts/status.tsx';
import { href } from '../router.ts';
import { templates } from '../store.ts';
import type { Instance } from '../types.ts';

/** A record of GET /gateway/connections. */
interface Connection {
  readonly id: string;
  readonly who: 'user' | 'shared';
  readonly user_id: string | null;
  readonly username: string | null;
  readonly templates: readonly string[];
  readonly issuer: string;
  readonly resource: string;
  readonly scopes: readonly string[];
  /** `ended`: it has to be connected again. */
  readonly state: 'connected' | 'ended';
  readonly reason: string | null;
  readonly connected_at: string;
}

const LOOKS = {
  connected: { tone: 'ok', icon: 'healthy', word: 'Connected' },
  ended: { tone: 'bad', icon: 'bad', word: 'Ended' },
  missing: { tone: 'warn', icon: 'warn', word: 'No account' },
  unhealthy: { tone: 'bad', icon: 'bad', word: 'Unhealthy' },
} as const satisfies Readonly<Record<string, Look>>;

export function ConnectionsPage() {
  const { data, error, reload } = useLoaded(() => get<readonly Connection[]>('gateway/connections'), []);
  const ending = useSignal<Connection>();
  const address = useSignal<{ readonly url: string; readonly instance: Instance }>();
  const servers = [...templates.value.values()].flat().filter(({ auth }) => auth !== undefined);
  useEffect(() => {
    if (data !== undefined) reload();
  }, [statesOf(servers)]);
  useReturn(reload);
  const end = ending.value;
  const opened = address.value;
  const isAsking = useRef(false);
  const connect = async (instance: Instance): Promise<void> => {
    if (isAsking.current) return; // a double click
    isAsking.current = true;
    await attempt(async () => {
      address.value = { url: await addressFor(instance), instance };
    });
    isAsking.current = false;
  };
  return (
    <>
      <h1>Connected accounts</h1>
      <p class="muted">
        Servers that want an account, and the accounts with which the gateway calls them. Tokens stay in the
        gateway.
      </p>
      {servers.length > 0 && (
        <Servers
          servers={servers}
          connections={data ?? []}
          onConnect={(instance) => void connect(instance)}
        />
      )}
      <section aria-labelledby="accounts">
        <h2 id="accounts">Accounts</h2>
        <Reading what="accounts" isRead={data !== undefined} error={error} reload={reload} />
        {data?.length === 0 && <NoAccount hasServers={servers.length > 0} />}
        <Connections
          connections={data ?? []}
          onEnd={(connection) => {
            ending.value = connection;
          }}
        />
      </section>
      {end !== undefined && (
        <Disconnect
          connection={end}
          onDone={reload}
          onClose={() => {
            ending.value = undefined;
          }}
        />
      )}
      {opened !== undefined && (
        <AddressDialog
          {...opened}
          onClose={() => {
            address.value = undefined;
            reload();
          }}
        />
      )}
    </>
  );
}

/** The address of the page of the gateway that leads to the sign-in at the server. */
async function addressFor({ template_name: template, id }: Instance): Promise<string> {
  const body = { template, instance_id: id };
  const { url } = await change<{ readonly url: string }>('POST', 'gateway/connections', body);
  return url;
}

/** A text that changes when an account is connected in another tab, after which its server opens again. */
function statesOf(servers: readonly Instance[]): string {
  return servers.map(({ server_id, state, reason }) => [server_id, state, reason].join()).join();
}

/** The tab is in view again. */
const EVENTS_OF_RETURN = ['focus', 'visibilitychange'];

function useReturn(reload: () => void): void {
  useEffect(() => {
    const follow = (): void => {
      if (document.visibilityState === 'visible') reload();
    };
    for (const type of EVENTS_OF_RETURN) addEventListener(type, follow);
    return () => {
      for (const type of EVENTS_OF_RETURN) removeEventListener(type, follow);
    };
  }, []);
}

interface ServersProps {
  readonly servers: readonly Instance[];
  readonly connections: readonly Connection[];
  readonly onConnect: (instance: Instance) => void;
}

function Servers({ servers, connections, onConnect }: ServersProps) {
  return (
    <section aria-labelledby="servers">
      <h2 id="servers">{plural(servers.length, 'server')} with an account</h2>
      <ul class="panel list accounts" aria-labelledby="servers">
        {servers.map((instance) => (
          <li key={instance.server_id}>
            <ServerRow instance={instance} connections={connections} onConnect={() => onConnect(instance)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface DisconnectProps {
  readonly connection: Connection;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function Disconnect({ connection, ...closing }: DisconnectProps) {
  const name = nameOf(connection);
  return (
    <Confirm
      title={`Disconnect ${ownerOf(connection)} from ${name}?`}
      text="Its tokens are deleted here, and revoked at the server if that can do it. Calls that need the account fail until one is connected again."
      action="Disconnect"
      run={() => change('DELETE', `gateway/connections/${encodeURIComponent(connection.id)}`)}
      done={`${name} is disconnected.`}
      {...closing}
    />
  );
}

function NoAccount({ hasServers }: { readonly hasServers: boolean }) {
  return (
    <Empty title="No accounts are connected.">
      {hasServers ? (
        <p>Connect one at a server above. Users connect their own when they first call a tool there.</p>
      ) : (
        <p>
          No server wants one.
          {mayWrite.value && (
            <>
              {' '}
              <a href={href('register')}>Register</a> an endpoint that is used with an account.
            </>
          )}
        </p>
      )}
    </Empty>
  );
}

interface ServerRowProps {
  readonly instance: Instance;
  readonly connections: readonly Connection[];
  readonly onConnect: () => void;
}

function ServerRow({ instance, connections, onConnect }: ServerRowProps) {
  const { template_name: template, id, endpoint, auth, reason } = instance;
  const isShared = auth?.who === 'shared';
  const own = account.value?.user_id ?? null;
  const connection = connections.find(
    ({ who, user_id, templates: used }) =>
      used.includes(template) && (isShared ? who === 'shared' : who === 'user' && user_id === own),
  );
  const look = lookOf(instance, connection);
  // While authentication is off there is no user whose account it could be.
  const mayConnect = isShared ? isAdmin.value : own !== null && !isOpen.value;
  return (
    <div class="row">
      <div class="cell-name">
        <a class="strong" href={href('template', { name: template, instance: id })}>
          {template}/{id}
        </a>
        <div class="cut small muted" title={endpoint ?? undefined}>
          {endpoint}
        </div>
      </div>
      <Badge {...look} />
      <span>{isShared ? 'One account for all' : 'Each user their own'}</span>
      <span class="small muted">{look === LOOKS.unhealthy ? reason : connection?.reason}</span>
      <span class="actions end">
        {mayConnect && (
          <button
            type="button"
            class={look === LOOKS.connected ? 'small' : 'small primary'}
            aria-label={`${connection === undefined ? 'Connect' : 'Connect again'}: ${template}/${id}`}
            onClick={onConnect}
          >
            {connection === undefined ? 'Connect' : 'Connect again'}
          </button>
        )}
      </span>
    </div>
  );
}

function lookOf(instance: Instance, connection: Connection | undefined): Look {
  if (instance.state === 'unhealthy') return LOOKS.unhealthy;
  if (connection === undefined || waitsForAccount(instance)) return LOOKS.missing;
  return LOOKS[connection.state];
}

function ConnectionRow({
  connection,
  onEnd,
}: {
  readonly connection: Connection;
  readonly onEnd: () => void;
}) {
  const { issuer, scopes, state, reason, connected_at } = connection;
  const name = nameOf(connection);
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">{name}</span>
        <div class="cut small muted" title={issuer}>
          by {issuer}
        </div>
        <div class="cut small muted" title={scopes.join(', ')}>
          {scopes.join(', ') || 'no scopes'}
        </div>
      </div>
      <div>
        <Badge {...LOOKS[state]} />
        {reason !== null && <div class="small muted">{reason}</div>}
      </div>
      <Cell name="account of">{ownerOf(connection)}</Cell>
      <Cell name="since">{day(connected_at)}</Cell>
      <span class="actions end">
        <button
          type="button"
          class="small danger"
          aria-label={`Disconnect ${ownerOf(connection)} from ${name}`}
          onClick={onEnd}
        >
          Disconnect
        </button>
      </span>
    </div>
  );
}

interface ConnectionsProps {
  readonly connections: readonly Connection[];
  readonly onEnd: (connection: Connection) => void;
}

function Connections({ connections, onEnd }: ConnectionsProps) {
  if (connections.length === 0) return null;
  return (
    <ul class="panel list accounts" aria-labelledby="accounts">
      {connections.map((connection) => (
        <li key={connection.id}>
          <ConnectionRow connection={connection} onEnd={() => onEnd(connection)} />
        </li>
      ))}
    </ul>
  );
}

function nameOf({ templates: used, resource }: Connection): string {
  return used.join(', ') || resource;
}

function ownerOf({ who, username, user_id }: Connection): string {
  return who === 'shared' ? 'all (shared)' : (username ?? user_id ?? '');
}

interface AddressDialogProps {
  readonly url: string;
  readonly instance: Instance;
  readonly onClose: () => void;
}

/** The address is opened in another tab, which the browser allows for a click on a link only. */
function AddressDialog({ url, instance, onClose }: AddressDialogProps) {
  const { template_name: template, auth } = instance;
  return (
    <Dialog title={`Connect an account at ${template}`} onClose={onClose}>
      <p>
        The next page says which server it is and where you sign in.{' '}
        {auth?.who === 'shared'
          ? 'All callers of the template will use the account that you choose there.'
          : 'Only your own calls will use the account that you choose there.'}
      </p>
      <div class="actions">
        <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
          Open the page in a new tab
        </a>
        <CopyButton label="Copy the address" text={() => url} />
      </div>
      <p class="muted">
        The address is for you alone, and valid for some minutes. Come back here when you are done.
      </p>
      <div class="actions end">
        <button type="button" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
