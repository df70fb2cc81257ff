// The dialogs that create and change users and API keys. Only one of them shows a new key.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { change, messageOf } from '../api.ts';
import { CopyButton } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Field } from './field.tsx';
import { Icon } from './icon.tsx';
import { notify } from './notices.tsx';
import { Output } from './result.tsx';
import { type Rights, RightsFields, rightsOf } from './rights-fields.tsx';
import { Failure } from './status.tsx';

/** A user of GET /auth/users. */
export interface User extends Rights {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  /** `admin`, `user`, or one of the settings. */
  readonly role: string;
  /** Absent: all of the role. */
  readonly scopes?: readonly string[];
  readonly is_active: boolean;
}

/** A key of GET /auth/api-keys, without its secret. */
export interface ApiKey extends Rights {
  readonly id: string;
  readonly name: string;
  readonly permissions: readonly string[];
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly is_active: boolean;
}

interface FormDialogProps {
  readonly title: string;
  /** The verb of the button. Default: Create. */
  readonly action?: string;
  readonly rights?: Rights;
  readonly onClose: () => void;
  /** Rejects with the fault. */
  readonly onSave: (data: FormData) => Promise<void>;
  readonly children?: ComponentChildren;
}

function FormDialog({ title, action = 'Create', rights, onClose, onSave, children }: FormDialogProps) {
  const error = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    isBusy.value = true;
    try {
      await onSave(new FormData(event.currentTarget as HTMLFormElement));
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        <RightsFields rights={rights} />
        {error.value !== undefined && <Failure text={error.value} />}
        <div class="actions end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy.value}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function NewUser({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const save = async (data: FormData): Promise<void> => {
    const { username, email, password, role } = Object.fromEntries(data);
    await change('POST', 'auth/users', {
      ...{ username, email, password, role, scopes: scopesIn(data) },
      ...rightsOf(data),
    });
    notify(`${data.get('username')} may sign in.`);
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
      <Field label="Password" isRequired hint="At least 8 characters.">
        <input name="password" type="password" required autocomplete="new-password" />
      </Field>
      <RoleField />
      <ScopeChecks legend={LIMIT} name="scopes" />
    </FormDialog>
  );
}

const BUILT_IN = ['user', 'admin'];

function RoleField({ value = 'user' }: { readonly value?: User['role'] }) {
  return (
    <Field label="Role" hint="Users read and call tools; administrators can also make changes.">
      <select name="role" defaultValue={value}>
        <option value="user">User</option>
        <option value="admin">Administrator</option>
        {!BUILT_IN.includes(value) && <option value={value}>{value}</option>}
      </select>
    </Field>
  );
}

interface ChangeUserProps {
  readonly user: User;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ChangeUser({ user, onClose, onDone }: ChangeUserProps) {
  const save = async (data: FormData): Promise<void> => {
    const password = data.get('password');
    const entered = { role: data.get('role'), scopes: scopesIn(data), ...rightsOf(data) };
    const changed = { ...changedIn(user, entered), ...(password === '' ? {} : { password }) };
    await saveChanged(`auth/users/${user.id}`, changed, user.username, onDone);
    onClose();
  };
  return (
    <FormDialog
      title={`Change ${user.username}`}
      action="Change"
      rights={user}
      onClose={onClose}
      onSave={save}
    >
      <Field label="New password" hint="Unchanged if empty. A new password ends all sessions of the user.">
        <input name="password" type="password" autocomplete="new-password" />
      </Field>
      <RoleField value={user.role} />
      <ScopeChecks legend={LIMIT} name="scopes" checked={user.scopes} />
    </FormDialog>
  );
}

/** The entered values that differ: others may have been changed meanwhile, and lists that are sent end what the account has open. */
function changedIn(before: object, entered: object): object {
  const known: Readonly<Record<string, unknown>> = { ...before };
  return Object.fromEntries(
    Object.entries(entered).filter(([name, value]) => textOf(name, value) !== textOf(name, known[name])),
  );
}

/** Equal for equal values. Only rules for tools have an order. */
function textOf(name: string, value: unknown): string {
  return JSON.stringify(Array.isArray(value) && name !== 'tools' ? value.toSorted() : (value ?? null));
}

async function saveChanged(path: string, changed: object, name: string, onDone: () => void): Promise<void> {
  if (Object.keys(changed).length === 0) return;
  await change('PATCH', path, changed);
  notify(`${name} is changed.`);
  onDone();
}

const SCOPES = {
  'tools:call': 'Call tools',
  'gateway:read': 'See instances and statistics',
  'gateway:write': 'Register and change instances',
  admin: 'Everything',
} as const;

const LIMIT = 'Only these rights of the role (none: all)';

interface ScopeChecksProps {
  readonly legend: string;
  readonly name: string;
  readonly checked?: readonly string[] | undefined;
}

function ScopeChecks({ legend, name, checked = [] }: ScopeChecksProps) {
  return (
    <fieldset class="form">
      <legend class="label">{legend}</legend>
      {Object.entries(SCOPES).map(([scope, text]) => (
        <label key={scope} class="check">
          <input type="checkbox" name={name} value={scope} defaultChecked={checked.includes(scope)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** Null: all of the role. */
function scopesIn(data: FormData): readonly FormDataEntryValue[] | null {
  const scopes = data.getAll('scopes');
  return scopes.length === 0 ? null : scopes;
}

export function NewKey({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: (key: string) => void;
}) {
  const save = async (data: FormData): Promise<void> => {
    const permissions = data.getAll('permissions');
    if (permissions.length === 0) throw new Error('Select at least one permission.');
    const expires = String(data.get('expires'));
    const { key } = await change<{ readonly key: string }>('POST', 'auth/api-keys', {
      name: data.get('name'),
      permissions,
      ...rightsOf(data),
      expires_at: expires === '' ? null : new Date(`${expires}T23:59:59`).toISOString(),
    });
    onDone(key);
  };
  return (
    <FormDialog title="New API key" onClose={onClose} onSave={save}>
      <Field label="Name" isRequired hint="The program that uses it, such as nightly build.">
        <input name="name" required maxLength={128} autocomplete="off" />
      </Field>
      <ScopeChecks legend="Permissions" name="permissions" checked={['tools:call']} />
      <Field label="Expires" hint="Never if empty.">
        <input name="expires" type="date" />
      </Field>
    </FormDialog>
  );
}

interface ChangeKeyProps {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ChangeKey({ apiKey, onClose, onDone }: ChangeKeyProps) {
  const save = async (data: FormData): Promise<void> => {
    const changed = changedIn(apiKey, rightsOf(data));
    await saveChanged(`auth/api-keys/${apiKey.id}`, changed, apiKey.name, onDone);
    onClose();
  };
  return (
    <FormDialog
      title={`Change ${apiKey.name}`}
      action="Change"
      rights={apiKey}
      onClose={onClose}
      onSave={save}
    />
  );
}

export function ShownKey({ text, onClose }: { readonly text: string; readonly onClose: () => void }) {
  return (
    <Dialog title="The new key" onClose={onClose}>
      <p class="callout warn">
        <Icon name="warn" />
        <span>The key is shown only once. Keep it in a safe place.</span>
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
