// The choice of the account for instances of a template that are registered at an endpoint without a choice of their own.
// Credentials are not here: they belong to an instance.

import { mayWrite } from '../account.ts';
import { setTemplate } from '../actions.ts';
import { Field } from './field.tsx';

export interface TemplateAuth {
  readonly mode: 'none' | 'headers' | 'oauth';
  readonly who?: 'user' | 'shared';
  readonly scopes?: readonly string[];
}

interface TemplateAccountProps {
  readonly name: string;
  readonly auth: TemplateAuth | null;
  readonly onChanged: () => void;
}

export function TemplateAccount({ name, auth, onChanged }: TemplateAccountProps) {
  const { mode = '', who, scopes = [] } = auth ?? {};
  const set = (next: TemplateAuth | null) => void setTemplate(name, { auth: next }).then(onChanged);
  const common = { disabled: !mayWrite.value };
  return (
    <section aria-labelledby="account">
      <h2 id="account">Account at the server</h2>
      <div class="panel padded form">
        <div class="columns">
          <Field
            label="Account"
            hint="For instances at an endpoint that are registered later without an account of their own. Their client ID and secret are set at the instance."
          >
            <select
              {...common}
              value={who ?? mode}
              onChange={({ currentTarget: { value } }) => set(authOf(value, scopes))}
            >
              <option value="">As defined, or none</option>
              <option value="none">None</option>
              <option value="headers">That of their headers</option>
              <option value="shared">One for all callers</option>
              <option value="user">Each user their own</option>
            </select>
          </Field>
          {who !== undefined && (
            <Field label="Scopes" hint="Separated by spaces. Empty: those that the server asks for.">
              <input
                {...common}
                key={scopes.join(' ')}
                autocomplete="off"
                defaultValue={scopes.join(' ')}
                onChange={({ currentTarget: { value } }) =>
                  set(authOf(who, value.split(/\s+/).filter(Boolean)))
                }
              />
            </Field>
          )}
        </div>
      </div>
    </section>
  );
}

function authOf(chosen: string, scopes: readonly string[]): TemplateAuth | null {
  if (chosen === 'shared' || chosen === 'user')
    return { mode: 'oauth', who: chosen, ...(scopes.length === 0 ? {} : { scopes }) };
  return chosen === 'none' || chosen === 'headers' ? { mode: chosen } : null;
}
