// Users and API keys: making them, switching users off, revoking keys. A new key is shown once.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { account } from '../account.ts';
import { change, get, messageOf } from '../api.ts';
import { day } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { type Loaded, useLoaded } from '../parts/load.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { Output } from '../parts/result.tsx';
import { Badge } from '../parts/state.tsx';
import { Empty, Failure, Loading } from '../parts/status.tsx';

interface User {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly role: 'admin' | 'user';
  readonly templates: readonly string[] | null;
  readonly is_active: boolean;
}

interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly permissions: readonly string[];
  readonly templates: readonly string[] | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly is_active: boolean;
}

type Opened =
  | { readonly dialog: 'user' | 'key' }
  | { readonly dialog: 'shown'; readonly key: string }
  | { readonly dialog: 'revoke'; readonly subject: ApiKey }
  | { readonly dialog: 'change' | 'delete'; readonly subject: User };

export function UsersPage() {
  const users = useLoaded(() => get<readonly User[]>('auth/users'), []);
  const keys = useLoaded(() => get<readonly ApiKey[]>('auth/api-keys'), []);
  const opened = useSignal<Opened | undefined>(undefined);
  const open = (next: Opened) => () => {
    opened.value = next;
  };
  const close = (): void => {
    opened.value = undefined;
  };
  const now = opened.value;
  return (
    <>
      <h1>Users and keys</h1>
      {account.value?.kind === 'anonymous' && (
        <p class="callout idle">
          <Icon name="info" />
          <span>Authentication is off: accounts and keys are kept, and needed only when it is on.</span>
        </p>
      )}
      <Part title="Users" loaded={users} action="New user" onAction={open({ dialog: 'user' })}>
        {(user: User) => (
          <UserRow
            user={user}
            onToggled={users.reload}
            onChange={open({ dialog: 'change', subject: user })}
            onDelete={open({ dialog: 'delete', subject: user })}
          />
        )}
      </Part>
      <Part title="API keys" loaded={keys} action="New key" onAction={open({ dialog: 'key' })}>
        {(key: ApiKey) => <KeyRow apiKey={key} onRevoke={open({ dialog: 'revoke', subject: key })} />}
      </Part>
      {now?.dialog === 'user' && <NewUser onClose={close} onDone={users.reload} />}
      {now?.dialog === 'change' && <ChangeUser user={now.subject} onClose={close} onDone={users.reload} />}
      {now?.dialog === 'key' && (
        <NewKey
          onClose={close}
          onDone={(key) => {
            keys.reload();
            opened.value = { dialog: 'shown', key };
          }}
        />
      )}
      {now?.dialog === 'shown' && <ShownKey text={now.key} onClose={close} />}
      {now?.dialog === 'revoke' && (
        <Confirm
          title={`Revoke ${now.subject.name}?`}
          text="Programs that use the key are refused from now on. It cannot be taken back."
          action="Revoke"
          onConfirm={async () => {
            await attempt(
              () => change('DELETE', `auth/api-keys/${now.subject.id}`),
              `${now.subject.name} is revoked.`,
            );
            keys.reload();
          }}
          onClose={close}
        />
      )}
      {now?.dialog === 'delete' && (
        <Confirm
          title={`Delete ${now.subject.username}?`}
          text="The user and the API keys of the user are void from now on. It cannot be taken back."
          action="Delete"
          onConfirm={async () => {
            await attempt(
              () => change('DELETE', `auth/users/${now.subject.id}`),
              `${now.subject.username} is deleted.`,
            );
            users.reload();
            keys.reload();
          }}
          onClose={close}
        />
      )}
    </>
  );
}

interface PartProps<T> {
  readonly title: string;
  readonly loaded: Loaded<readonly T[]>;
  readonly action: string;
  readonly onAction: () => void;
  readonly children: (one: T) => ComponentChildren;
}

function Part<T extends { readonly id: string }>({
  title,
  loaded,
  action,
  onAction,
  children,
}: PartProps<T>) {
  const { data, error, reload } = loaded;
  return (
    <section aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <button type="button" onClick={onAction}>
          <Icon name="plus" />
          {action}
        </button>
      </div>
      {error !== undefined && <Failure text={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Loading what={title} />}
      {data?.length === 0 && <Empty title="There is none yet." />}
      {data !== undefined && data.length > 0 && (
        <ul class="panel list accounts">
          {data.map((one) => (
            <li key={one.id}>{children(one)}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface UserRowProps {
  readonly user: User;
  readonly onToggled: () => void;
  readonly onChange: () => void;
  readonly onDelete: () => void;
}

function UserRow({ user, onToggled, onChange, onDelete }: UserRowProps) {
  const { id, username, email, role, templates, is_active: isActive } = user;
  const isSelf = id === account.value?.user_id;
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
      <span>{role === 'admin' ? 'Administrator' : 'User'}</span>
      <Cell name="templates">{templates === null ? 'all templates' : templates.join(', ') || 'none'}</Cell>
      <span class="actions end">
        <button type="button" class="small" onClick={onChange}>
          Change
        </button>
        <button type="button" class="small" disabled={isSelf} onClick={() => void toggle()}>
          {isActive ? 'Switch off' : 'Switch on'}
        </button>
        <button type="button" class="small danger" disabled={isSelf} onClick={onDelete}>
          Delete
        </button>
      </span>
    </div>
  );
}

function KeyRow({ apiKey, onRevoke }: { readonly apiKey: ApiKey; readonly onRevoke: () => void }) {
  const { name, permissions, expires_at, last_used_at, is_active: isActive } = apiKey;
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">{name}</span>
        <div class="cut small muted">{permissions.join(', ')}</div>
      </div>
      <Activity isActive={isActive} />
      <span>{expires_at === null ? 'Never expires' : `Until ${day(expires_at)}`}</span>
      <Cell name="last used">{last_used_at === null ? 'never used' : day(last_used_at)}</Cell>
      <span class="actions end">
        <button type="button" class="small danger" aria-label={`Revoke ${name}`} onClick={onRevoke}>
          Revoke
        </button>
      </span>
    </div>
  );
}

function Activity({ isActive }: { readonly isActive: boolean }) {
  return isActive ? (
    <Badge tone="ok" icon="healthy" word="Active" />
  ) : (
    <Badge tone="idle" icon="stopped" word="Off" />
  );
}

interface FormDialogProps {
  readonly title: string;
  /** The verb of the button. Default: Create. */
  readonly action?: string;
  readonly templates?: readonly string[] | null;
  readonly onClose: () => void;
  /** Rejects with what is wrong. */
  readonly onSave: (data: FormData) => Promise<void>;
  readonly children: ComponentChildren;
}

function FormDialog({ title, action = 'Create', templates, onClose, onSave, children }: FormDialogProps) {
  const error = useSignal<string | undefined>(undefined);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    try {
      await onSave(new FormData(event.currentTarget as HTMLFormElement));
    } catch (thrown) {
      error.value = messageOf(thrown);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        <Field label="Templates" hint="Names with commas between them. Empty: all.">
          <input name="templates" defaultValue={templates?.join(', ')} />
        </Field>
        {error.value !== undefined && <Failure text={error.value} />}
        <div class="actions end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function templatesOf(data: FormData): readonly string[] | null {
  const names = String(data.get('templates'))
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return names.length === 0 ? null : names;
}

function NewUser({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const save = async (data: FormData): Promise<void> => {
    const [username, email, password, role] = ['username', 'email', 'password', 'role'].map((name) =>
      data.get(name),
    );
    await change('POST', 'auth/users', { username, email, password, role, templates: templatesOf(data) });
    notify(`${username} may sign in.`);
    onDone();
    onClose();
  };
  return (
    <FormDialog title="New user" onClose={onClose} onSave={save}>
      <Field label="User name" isRequired>
        <input
          name="username"
          required
          autocomplete="off"
          pattern="[A-Za-z0-9][A-Za-z0-9._@\-]*"
          maxLength={64}
        />
      </Field>
      <Field label="Email" isRequired>
        <input name="email" required autocomplete="off" />
      </Field>
      <Field label="Password" isRequired hint="At least 12 characters.">
        <input name="password" type="password" required autocomplete="new-password" />
      </Field>
      <RoleField />
    </FormDialog>
  );
}

function RoleField({ value = 'user' }: { readonly value?: User['role'] }) {
  return (
    <Field label="Role" hint="Users see and call; administrators also change.">
      <select name="role" defaultValue={value}>
        <option value="user">User</option>
        <option value="admin">Administrator</option>
      </select>
    </Field>
  );
}

interface ChangeUserProps {
  readonly user: User;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function ChangeUser({ user, onClose, onDone }: ChangeUserProps) {
  const save = async (data: FormData): Promise<void> => {
    const password = data.get('password');
    await change('PATCH', `auth/users/${user.id}`, {
      role: data.get('role'),
      templates: templatesOf(data),
      ...(password === '' ? {} : { password }),
    });
    notify(`${user.username} is changed.`);
    onDone();
    onClose();
  };
  return (
    <FormDialog
      title={`Change ${user.username}`}
      action="Change"
      templates={user.templates}
      onClose={onClose}
      onSave={save}
    >
      <Field label="New password" hint="Empty: as before. A new one ends all sessions of the user.">
        <input name="password" type="password" autocomplete="new-password" />
      </Field>
      <RoleField value={user.role} />
    </FormDialog>
  );
}

const SCOPES = {
  'tools:call': 'Call tools',
  'gateway:read': 'See instances and statistics',
  'gateway:write': 'Register and change instances',
  admin: 'Everything',
} as const;

function NewKey({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: (key: string) => void;
}) {
  const save = async (data: FormData): Promise<void> => {
    const permissions = data.getAll('permissions');
    if (permissions.length === 0) throw new Error('Choose what the key may do.');
    const expires = String(data.get('expires'));
    const { key } = await change<{ readonly key: string }>('POST', 'auth/api-keys', {
      name: data.get('name'),
      permissions,
      templates: templatesOf(data),
      expires_at: expires === '' ? null : new Date(`${expires}T23:59:59`).toISOString(),
    });
    onDone(key);
  };
  return (
    <FormDialog title="New API key" onClose={onClose} onSave={save}>
      <Field label="Name" isRequired hint="What uses it: nightly build.">
        <input name="name" required maxLength={128} autocomplete="off" />
      </Field>
      <fieldset class="form">
        <legend class="label">It may</legend>
        {Object.entries(SCOPES).map(([scope, text]) => (
          <label key={scope} class="check">
            <input type="checkbox" name="permissions" value={scope} defaultChecked={scope === 'tools:call'} />
            {text}
          </label>
        ))}
      </fieldset>
      <Field label="Expires" hint="Empty: never.">
        <input name="expires" type="date" />
      </Field>
    </FormDialog>
  );
}

function ShownKey({ text, onClose }: { readonly text: string; readonly onClose: () => void }) {
  return (
    <Dialog title="The new key" onClose={onClose}>
      <p class="callout warn">
        <Icon name="warn" />
        <span>It is shown only now. Keep it in a safe place.</span>
      </p>
      <Output text={text} />
      <div class="actions end">
        <CopyButton label="Copy" text={() => text} />
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
