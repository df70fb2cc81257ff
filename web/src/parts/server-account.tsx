// The fields of an endpoint whose server wants an account, and their part of the registration.

import { useSignal } from '@preact/signals';
import type { Instance } from '../types.ts';
import { Field } from './field.tsx';

type ServerAuth = NonNullable<Instance['auth']>;

export function ServerAccountFields({ auth }: { readonly auth: ServerAuth | undefined }) {
  const who = useSignal(auth?.who ?? '');
  const isKept = auth?.client_secret !== undefined;
  return (
    <>
      <Field
        label="Account at the server"
        hint="For servers that want OAuth. It is connected after the registration."
      >
        <select
          name="who"
          class="short"
          value={who.value}
          onChange={(event) => {
            who.value = event.currentTarget.value;
          }}
        >
          <option value="">None, or that of the template</option>
          <option value="shared">One for all callers</option>
          <option value="user">Each user their own</option>
        </select>
      </Field>
      {who.value !== '' && (
        <div class="columns">
          <Field
            label="Client ID"
            hint="By which the server knows this gateway. Empty: the gateway registers itself."
          >
            <input name="client_id" autocomplete="off" defaultValue={auth?.client_id} />
          </Field>
          <Field
            label="Client secret"
            hint={isKept ? 'It is never shown: write it again.' : 'It is stored encrypted.'}
          >
            <input name="client_secret" type="password" required={isKept} autocomplete="off" />
          </Field>
          <Field label="Scopes" hint="Separated by spaces. Empty: those that the server asks for.">
            <input name="scopes" autocomplete="off" defaultValue={auth?.scopes?.join(' ')} />
          </Field>
        </div>
      )}
    </>
  );
}

/** The field `auth` of a registration; undefined when none was chosen. `text`: gives the text entered in a field of the form. */
export function serverAuthOf(text: (name: string) => string): Readonly<Record<string, unknown>> | undefined {
  const who = text('who');
  if (who === '') return undefined;
  const scopes = text('scopes').split(/\s+/).filter(Boolean);
  const credentials = ['client_id', 'client_secret'].flatMap((name) =>
    text(name) === '' ? [] : [[name, text(name)] as const],
  );
  return {
    ...{ mode: 'oauth', who, ...Object.fromEntries(credentials) },
    ...(scopes.length === 0 ? {} : { scopes }),
  };
}
