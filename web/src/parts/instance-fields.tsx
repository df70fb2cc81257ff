// The fields of an instance in a form, and the body of a registration made of them.

import type { Instance } from '../types.ts';
import { Field } from './field.tsx';
import { ServerAccountFields, serverAuthOf } from './server-account.tsx';

/** The kinds of transport of an endpoint; the build sets it from the table of the gateway. */
declare const ENDPOINT_TRANSPORTS: readonly (readonly [name: string, title: string])[];
/** The eras that a registration may fix, from the same place. */
declare const ERAS: readonly (readonly [era: string, revisions: string])[];

interface EditedProps {
  readonly edited: Instance | undefined;
}

export function InstanceNameField({ edited }: EditedProps) {
  return (
    <Field label="Instance name" hint="Generated if empty.">
      <input
        name="id"
        pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
        defaultValue={edited?.id}
        readOnly={edited !== undefined}
      />
    </Field>
  );
}

export function WeightField({ edited }: EditedProps) {
  return (
    <Field label="Weight" hint="1 to 1,000, used by weighted round robin.">
      <input
        name="weight"
        type="number"
        min={1}
        max={1_000}
        placeholder="1"
        class="short"
        defaultValue={edited?.weight}
      />
    </Field>
  );
}

export function EndpointFields({ edited }: EditedProps) {
  return (
    <>
      <Field label="URL" isRequired hint="Without a path, /mcp is added.">
        <input
          name="endpoint"
          type="url"
          required
          placeholder="http://127.0.0.1:3001/mcp"
          defaultValue={edited?.endpoint ?? ''}
        />
      </Field>
      <Field label="Transport">
        <select
          name="transport"
          class="short"
          defaultValue={edited?.endpoint === null ? '' : edited?.transport}
        >
          <option value="">Detect automatically</option>
          {ENDPOINT_TRANSPORTS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      <Field
        label="Headers"
        hint={`One per line, as Name: value. They are stored encrypted.${edited === undefined ? '' : AGAIN}`}
      >
        <textarea
          name="headers"
          class="mono"
          placeholder="Authorization: Bearer …"
          spellcheck={false}
          defaultValue={namesFor(edited?.headers, ':')}
        />
      </Field>
      <ServerAccountFields auth={edited?.auth} />
    </>
  );
}

export function EraField({ edited }: EditedProps) {
  return (
    <Field label="Protocol era" hint="Needed if a server answers wrongly.">
      <select name="era" defaultValue={edited?.era === 'auto' ? '' : edited?.era}>
        <option value="">Found out (auto)</option>
        {ERAS.map(([era, revisions]) => (
          <option key={era} value={era}>
            {`${era}, ${revisions}`}
          </option>
        ))}
      </select>
    </Field>
  );
}

const AGAIN = ' Values are never shown: write them again.';

/** `NAME=` for each name, so that none is forgotten. */
function namesFor(values: Readonly<Record<string, string>> | undefined, separator: ':' | '='): string {
  return Object.keys(values ?? {})
    .map((name) => `${name}${separator}`)
    .join('\n');
}

/** The command as it is typed: words with other characters in quotes. */
function commandLine({ command, args }: Instance): string {
  if (command === null) return '';
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

export function kindOf(edited: Instance | undefined): 'endpoint' | 'command' {
  return edited !== undefined && edited.command !== null ? 'command' : 'endpoint';
}

export function CommandFields({ edited }: EditedProps) {
  return (
    <>
      <Field label="Command" isRequired hint="Program and arguments, without a shell.">
        <input
          name="command"
          required
          class="mono"
          placeholder="npx -y @scope/server --flag"
          defaultValue={edited === undefined ? '' : commandLine(edited)}
          spellcheck={false}
        />
      </Field>
      <Field label="Working directory">
        <input name="working_dir" class="mono" spellcheck={false} defaultValue={edited?.working_dir ?? ''} />
      </Field>
      <Field
        label="Environment"
        hint={`One per line, as NAME=value. They are stored encrypted.${edited === undefined ? '' : AGAIN}`}
      >
        <textarea
          name="env_vars"
          class="mono"
          placeholder="API_TOKEN=…"
          spellcheck={false}
          defaultValue={namesFor(edited?.env_vars, '=')}
        />
      </Field>
    </>
  );
}

export interface RegisterBody {
  readonly template_name: string;
  readonly instance: Readonly<Record<string, unknown>>;
}

/** Empty fields are omitted. Throws for a line that is not a pair. */
export function bodyOf(
  form: HTMLFormElement,
  kind: 'endpoint' | 'command',
  edited: Instance | undefined,
): RegisterBody {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  const weight = text('weight');
  const fields =
    kind === 'endpoint'
      ? {
          endpoint: text('endpoint'),
          transport: text('transport'),
          headers: pairs(text('headers'), ':', edited !== undefined),
          auth: serverAuthOf(text),
        }
      : {
          command: text('command'),
          working_dir: text('working_dir'),
          env_vars: pairs(text('env_vars'), '=', edited !== undefined),
          ...(edited && keptOf(edited)),
        };
  const metadata = edited === undefined ? {} : { metadata: edited.metadata };
  const all = {
    id: text('id'),
    ...metadata,
    era: text('era'),
    ...fields,
    ...(weight === '' ? {} : { weight: Number(weight) }),
  };
  const instance = Object.fromEntries(Object.entries(all).filter(([, value]) => (value ?? '') !== ''));
  return { template_name: text('template'), instance };
}

/** What the form of a program does not show: it stays as it is. */
function keptOf({ endpoint, transport, node_id, force, secret_env_vars }: Instance) {
  return { endpoint, transport: endpoint && transport, node: node_id, force, secret_env_vars };
}

function pairs(
  text: string,
  separator: ':' | '=',
  isEdited: boolean,
): Readonly<Record<string, string>> | undefined {
  if (text === '') return undefined;
  const entries = text.split('\n').flatMap((line): [string, string][] => {
    if (line.trim() === '') return [];
    const at = line.indexOf(separator);
    if (at < 1) throw new Error(`"${line}" is invalid: write a name, "${separator}" and a value.`);
    const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    if (value === '' && isEdited) throw new Error(`Write the value of "${name}", or remove its line.`);
    return [[name, value]];
  });
  return Object.fromEntries(entries);
}
