// The grants: which client may act as whom, and the action that ends it. Users see their own, administrators all.

import { useSignal } from '@preact/signals';
import { isAdmin, isOpen } from '../account.ts';
import { change, get } from '../api.ts';
import { day } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { useLoaded } from '../parts/load.ts';
import { Empty, Reading } from '../parts/status.tsx';
import { href } from '../router.ts';

interface Grant {
  readonly id: string;
  readonly client_name: string;
  readonly username?: string | null;
  readonly user_id: string;
  readonly resource: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export function GrantsPage() {
  const { data, error, reload } = useLoaded(() => get<readonly Grant[]>('auth/grants'), []);
  const ending = useSignal<Grant>();
  const end = ending.value;
  return (
    <>
      <h1>Grants</h1>
      <p class="muted">
        Clients that signed a user in by the address of the gateway. Each acts as its user until its grant
        ends.
      </p>
      <Reading what="grants" isRead={data !== undefined} error={error} reload={reload} />
      {data?.length === 0 && (
        <Empty title="No client has a grant.">
          {!isOpen.value && (
            <p>
              <a href={href('connect')}>Connect</a> shows how a client signs its user in.
            </p>
          )}
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <ul class="panel list accounts" aria-label="Grants">
          {data.map((grant) => (
            <li key={grant.id}>
              <GrantRow
                grant={grant}
                onEnd={() => {
                  ending.value = grant;
                }}
              />
            </li>
          ))}
        </ul>
      )}
      {end !== undefined && (
        <Confirm
          title={`End the grant of ${end.client_name}?`}
          text="The client is refused within some seconds, at every node. It may ask its user again."
          action="End the grant"
          run={() => change('DELETE', `auth/grants/${encodeURIComponent(end.id)}`)}
          done={`The grant of ${end.client_name} is ended.`}
          onDone={reload}
          onClose={() => {
            ending.value = undefined;
          }}
        />
      )}
    </>
  );
}

function GrantRow({ grant, onEnd }: { readonly grant: Grant; readonly onEnd: () => void }) {
  const { client_name: name, username, user_id: userId, resource, scopes, created_at, last_used_at } = grant;
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">{name}</span>
        <div class="cut small muted" title={resource}>
          {resource}
        </div>
        <div class="cut small muted">{scopes.join(', ')}</div>
      </div>
      <Cell name="user">{isAdmin.value ? (username ?? userId) : 'you'}</Cell>
      <Cell name="since">{day(created_at)}</Cell>
      <Cell name="last used">{last_used_at === null ? 'never used' : day(last_used_at)}</Cell>
      <span class="actions end">
        <button type="button" class="small danger" aria-label={`End the grant of ${name}`} onClick={onEnd}>
          End
        </button>
      </span>
    </div>
  );
}
