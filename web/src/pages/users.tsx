// Users and API keys: creates both, disables users, revokes keys. A new key is shown once.

import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { account, isOpen } from '../account.ts';
import { change, get } from '../api.ts';
import { count, day } from '../format.ts';
import {
  type ApiKey,
  ChangeKey,
  ChangeUser,
  NewKey,
  NewUser,
  ShownKey,
  type User,
} from '../parts/account-dialogs.tsx';
import { Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Icon } from '../parts/icon.tsx';
import { type Loaded, useLoaded } from '../parts/load.ts';
import { More } from '../parts/more.tsx';
import { attempt } from '../parts/notices.tsx';
import { rightsText } from '../parts/rights-fields.tsx';
import { Search } from '../parts/search.tsx';
import { Badge } from '../parts/state.tsx';
import { Empty, Reading } from '../parts/status.tsx';
import { route, setParams } from '../router.ts';

type Opened =
  | { readonly dialog: 'user' | 'key' }
  | { readonly dialog: 'shown'; readonly key: string }
  | { readonly dialog: 'changeKey' | 'revoke'; readonly subject: ApiKey }
  | { readonly dialog: 'change' | 'delete'; readonly subject: User };

export function UsersPage() {
  const users = useLoaded(() => get<readonly User[]>('auth/users'), []);
  const keys = useLoaded(() => get<readonly ApiKey[]>('auth/api-keys'), []);
  const limits = useLoaded(() => get<{ readonly settings: readonly Setting[] }>('gateway/settings'), []);
  const hourly = (name: string) => limits.data?.settings.find((each) => each.name === `rate_limits.${name}`);
  const opened = useSignal<Opened | undefined>(
    route.value.params.get('new') === 'key' && !isOpen.value ? { dialog: 'key' } : undefined,
  );
  const open = (next: Opened) => () => {
    opened.value = next;
  };
  const close = (): void => {
    opened.value = undefined;
    setParams({ new: undefined });
  };
  return (
    <>
      <h1>Users and keys</h1>
      {isOpen.value && <AccountsAreUnused />}
      <Part
        title="Users"
        limit={hourly('user_per_hour')}
        unlimited="administrators"
        loaded={users}
        textOf={({ username, email }) => `${username} ${email}`}
        action="New user"
        onAction={open({ dialog: 'user' })}
      >
        {(user: User) => (
          <UserRow
            user={user}
            onToggled={users.reload}
            onChange={open({ dialog: 'change', subject: user })}
            onDelete={open({ dialog: 'delete', subject: user })}
          />
        )}
      </Part>
      <Part
        title="API keys"
        limit={hourly('api_key_per_hour')}
        unlimited="keys with the permission admin, while their owner is an administrator"
        loaded={keys}
        textOf={({ id, name }) => `${name} ${id}`}
        action="New key"
        onAction={open({ dialog: 'key' })}
      >
        {(key: ApiKey) => (
          <KeyRow
            apiKey={key}
            onChange={open({ dialog: 'changeKey', subject: key })}
            onRevoke={open({ dialog: 'revoke', subject: key })}
          />
        )}
      </Part>
      {opened.value !== undefined && (
        <AccountDialog key={opened.value} opened={opened} users={users} keys={keys} onClose={close} />
      )}
    </>
  );
}

function AccountsAreUnused() {
  return (
    <p class="callout idle">
      <Icon name="info" />
      <span>
        While authentication is off, accounts are not needed, and are changed from the command line of the
        gateway's machine only: <code>stagedoor user create</code>.
      </span>
    </p>
  );
}

interface AccountDialogProps {
  readonly opened: Signal<Opened | undefined>;
  readonly users: Loaded<unknown>;
  readonly keys: Loaded<unknown>;
  readonly onClose: () => void;
}

function AccountDialog({ opened, users, keys, onClose }: AccountDialogProps) {
  const now = opened.value;
  const close = (): void => {
    // The answer to a dialog that was closed closes no other one.
    if (opened.value === now) onClose();
  };
  switch (now?.dialog) {
    case 'user':
      return <NewUser onClose={close} onDone={users.reload} />;
    case 'change':
      return <ChangeUser user={now.subject} onClose={close} onDone={users.reload} />;
    case 'delete':
      return (
        <DeleteUser
          user={now.subject}
          onClose={close}
          onDone={() => {
            users.reload();
            keys.reload();
          }}
        />
      );
    case 'key':
      return (
        <NewKey
          onClose={close}
          onDone={(key) => {
            keys.reload();
            opened.value = { dialog: 'shown', key };
          }}
        />
      );
    case 'shown':
      return <ShownKey text={now.key} onClose={close} />;
    case 'changeKey':
      return <ChangeKey apiKey={now.subject} onClose={close} onDone={keys.reload} />;
    case 'revoke':
      return <RevokeKey apiKey={now.subject} onClose={close} onDone={keys.reload} />;
    default:
      return null;
  }
}

interface EndProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function DeleteUser({ user: { id, username }, ...closing }: EndProps & { readonly user: User }) {
  return (
    <Confirm
      title={`Delete ${username}?`}
      text="The user and their API keys stop working at once. This cannot be undone."
      action="Delete"
      run={() => change('DELETE', `auth/users/${id}`)}
      done={`${username} is deleted.`}
      {...closing}
    />
  );
}

function RevokeKey({ apiKey: { id, name }, ...closing }: EndProps & { readonly apiKey: ApiKey }) {
  return (
    <Confirm
      title={`Revoke ${name}?`}
      text="Programs that use the key are refused at once. This cannot be undone."
      action="Revoke"
      run={() => change('DELETE', `auth/api-keys/${id}`)}
      done={`${name} is revoked.`}
      {...closing}
    />
  );
}

type Setting = { readonly name: string; readonly value: string };

interface PartProps<T> {
  readonly title: string;
  /** Requests per hour of each. */
  readonly limit: Setting | undefined;
  /** The words for the ones without that limit. */
  readonly unlimited: string;
  readonly loaded: Loaded<readonly T[]>;
  /** The text that the filter searches. */
  readonly textOf: (one: T) => string;
  readonly action: string;
  readonly onAction: () => void;
  readonly children: (one: T) => ComponentChildren;
}

/** Rows of a list in the document: thousands would make each action of the page slow. */
const ROWS = 100;

function Part<T extends { readonly id: string }>({
  title,
  limit,
  unlimited,
  loaded,
  textOf,
  action,
  onAction,
  children,
}: PartProps<T>) {
  const { data, error, reload } = loaded;
  const filter = useSignal('');
  const most = useSignal(ROWS);
  const found = data?.filter((one) => textOf(one).toLowerCase().includes(filter.value)) ?? [];
  const showMore = (): void => {
    most.value += ROWS;
  };
  return (
    <section aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <div class="actions">
          <Search label={`Filter ${title}`} count={data?.length ?? 0} filter={filter} />
          {!isOpen.value && (
            <button type="button" onClick={onAction}>
              <Icon name="plus" />
              {action}
            </button>
          )}
        </div>
      </div>
      {limit !== undefined && (
        <p class="muted">
          Rate limit: {count(Number(limit.value))} requests per hour each; none for {unlimited}.
        </p>
      )}
      <Reading what={title} isRead={data !== undefined} error={error} reload={reload} />
      {data !== undefined && found.length === 0 && (
        <Empty title={data.length === 0 ? 'None yet.' : 'Nothing matches.'} />
      )}
      {found.length > 0 && (
        <ul class="panel list accounts">
          {found.slice(0, most.value).map((one) => (
            <li key={one.id}>{children(one)}</li>
          ))}
        </ul>
      )}
      <More more={found.length > most.value ? showMore : undefined} isBusy={false} />
    </section>
  );
}

const ROLES: Readonly<Record<string, string>> = { admin: 'Administrator', user: 'User' };

interface UserRowProps {
  readonly user: User;
  readonly onToggled: () => void;
  readonly onChange: () => void;
  readonly onDelete: () => void;
}

function UserRow({ user, onToggled, onChange, onDelete }: UserRowProps) {
  const { id, username, email, role, scopes, is_active: isActive } = user;
  const isFixed = isOpen.value || id === account.value?.user_id;
  const toggle = async (): Promise<void> => {
    const done = `${username} may ${isActive ? 'no longer ' : ''}sign in.`;
    await attempt(() => change('PATCH', `auth/users/${id}`, { is_active: !isActive }), done);
    onToggled();
  };
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">{username}</span>
        <div class="cut small muted">{email}</div>
      </div>
      <Activity isActive={isActive} />
      <span>
        {ROLES[role] ?? role}
        {scopes !== undefined && <div class="cut small muted">{scopes.join(', ')}</div>}
      </span>
      <Cell name="may use">{rightsText(user)}</Cell>
      <span class="actions end">
        <RowButton action="Change" name={username} disabled={isOpen.value} onClick={onChange} />
        <RowButton
          action={isActive ? 'Disable' : 'Enable'}
          name={username}
          disabled={isFixed}
          onClick={() => void toggle()}
        />
        <RowButton isDangerous action="Delete" name={username} disabled={isFixed} onClick={onDelete} />
      </span>
    </div>
  );
}

interface RowButtonProps {
  readonly action: string;
  /** The name of the user or the key. */
  readonly name: string;
  readonly isDangerous?: boolean;
  readonly disabled: boolean;
  readonly onClick: () => void;
}

function RowButton({ action, name, isDangerous, ...more }: RowButtonProps) {
  return (
    <button
      type="button"
      class={isDangerous ? 'small danger' : 'small'}
      aria-label={`${action} ${name}`}
      {...more}
    >
      {action}
    </button>
  );
}

interface KeyRowProps {
  readonly apiKey: ApiKey;
  readonly onChange: () => void;
  readonly onRevoke: () => void;
}

function KeyRow({ apiKey, onChange, onRevoke }: KeyRowProps) {
  const { name, permissions, expires_at, last_used_at, is_active: isActive } = apiKey;
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">{name}</span>
        <div class="cut small muted">{permissions.join(', ')}</div>
        <div class="cut small muted" title={rightsText(apiKey)}>
          {rightsText(apiKey)}
        </div>
      </div>
      <Activity isActive={isActive} />
      <span>{expires_at === null ? 'Never expires' : `Until ${day(expires_at)}`}</span>
      <Cell name="last used">{last_used_at === null ? 'never used' : day(last_used_at)}</Cell>
      <span class="actions end">
        <RowButton action="Change" name={name} disabled={isOpen.value} onClick={onChange} />
        <RowButton isDangerous action="Revoke" name={name} disabled={isOpen.value} onClick={onRevoke} />
      </span>
    </div>
  );
}

function Activity({ isActive }: { readonly isActive: boolean }) {
  return isActive ? (
    <Badge tone="ok" icon="healthy" word="Active" />
  ) : (
    <Badge tone="idle" icon="stopped" word="Disabled" />
  );
}
