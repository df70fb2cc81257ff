// Registers an instance: by the definition of its template, an endpoint, or a command that the gateway runs.
// The connection of the latter two can be tested before they are registered.

import { useSignal } from '@preact/signals';
import { isOpen, mayWrite } from '../account.ts';
import { change, get, messageOf } from '../api.ts';
import { plural } from '../format.ts';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { useLoaded } from '../parts/load.ts';
import { notify } from '../parts/notices.tsx';
import { SchemaFields } from '../parts/schema-form.tsx';
import { ServerAccountFields, serverAuthOf } from '../parts/server-account.tsx';
import { Empty, Failure, Loading } from '../parts/status.tsx';
import { href, navigate, route } from '../router.ts';
import { initialValue, type Schema } from '../schema.ts';
import { balancers, readAll, templates } from '../store.ts';
import type { Instance } from '../types.ts';

type RegistrationKind = 'definition' | 'endpoint' | 'command';

/** Answer of POST /gateway/test. */
interface TestResult {
  readonly ok: boolean;
  readonly era?: string;
  readonly server?: { readonly name: string; readonly version: string };
  readonly tools?: number;
  readonly duration_ms: number;
  readonly error_code?: string;
  readonly detail?: string;
  readonly stderr?: readonly string[];
}

/** The part of GET /gateway/templates/{template} that a form needs. */
interface Definition {
  readonly is_defined: boolean;
  readonly config_schema: Schema | null;
}

export function RegisterPage() {
  const template = useSignal(route.value.params.get('template') ?? '');
  const chosen = useSignal<RegistrationKind | undefined>(undefined);
  const config = useSignal<unknown>(undefined);
  const busy = useSignal<'test' | 'save' | undefined>(undefined);
  const result = useSignal<TestResult | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  const name = templates.value.has(template.value) ? template.value : undefined;
  const editedId = route.value.params.get('instance');
  const edited = templates.value.get(template.value)?.find(({ id }) => id === editedId);
  const { data } = useLoaded(
    async () => name && { ...(await get<Definition>(`gateway/templates/${name}`)), name },
    [name],
  );
  if (!mayWrite.value) return <Empty title="Your account may not register instances." />;
  if (editedId !== null && balancers.value === undefined) return <Loading what="the instance" />;

  // Until it is read, and if that fails, `data` is that of the previous name.
  const definition = data && data.name === name && data.is_defined ? data : undefined;
  const usual = definition === undefined || edited !== undefined ? kindOf(edited) : 'definition';
  const kind = chosen.value === 'definition' ? usual : (chosen.value ?? usual);
  const schema = definition?.config_schema ?? {};
  const run = async (action: 'test' | 'save', form: HTMLFormElement): Promise<void> => {
    busy.value = action;
    result.value = undefined;
    error.value = undefined;
    try {
      if (kind === 'definition')
        await save('servers', { template_name: template.value, config: config.value ?? {} });
      else if (action === 'save') await save('gateway/register', bodyOf(form, kind, edited));
      else result.value = await change<TestResult>('POST', 'gateway/test', bodyOf(form, kind, edited));
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      busy.value = undefined;
    }
  };
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    void run('save', event.currentTarget as HTMLFormElement);
  };
  // No button that submits: Enter would press the first one.
  const onTest = ({ currentTarget: { form } }: { readonly currentTarget: HTMLButtonElement }): void => {
    if (form?.reportValidity()) void run('test', form);
  };
  return (
    <>
      <h1>{edited === undefined ? 'Register an instance' : `Edit ${edited.id}`}</h1>
      {edited !== undefined && (
        <p class="lead">
          The instance is replaced in place: running calls finish, then new ones use the new settings.
        </p>
      )}
      <form class="panel padded narrow" onSubmit={onSubmit}>
        <div class="columns">
          <Field
            label="Template"
            isRequired
            hint="The name that clients call. Its instances share the calls."
          >
            <input
              name="template"
              required
              readOnly={edited !== undefined}
              list="template-names"
              pattern="[a-z][a-z0-9\-]*"
              title="Lower-case letters, digits and hyphens"
              value={template.value}
              onInput={(event) => {
                template.value = event.currentTarget.value;
                config.value = undefined;
              }}
            />
          </Field>
          {kind !== 'definition' && (
            <Field label="Instance name" hint="Generated if empty.">
              <input
                name="id"
                pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
                defaultValue={edited?.id}
                readOnly={edited !== undefined}
              />
            </Field>
          )}
        </div>
        <datalist id="template-names">
          {[...templates.value.keys()].map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <fieldset class="segments" aria-label="Kind of instance">
          {KINDS.map(([value, text]) =>
            value === 'definition' && (definition === undefined || edited !== undefined) ? null : (
              <button
                key={value}
                type="button"
                aria-pressed={kind === value}
                onClick={() => {
                  chosen.value = value;
                  result.value = undefined;
                }}
              >
                {text}
              </button>
            ),
          )}
        </fieldset>
        {kind !== 'endpoint' && isOpen.value && <NoCommands />}
        {kind === 'definition' && (
          <SchemaFields
            key={template.value}
            schema={schema}
            root={schema}
            value={config.value ?? initialValue(schema)}
            onChange={(next) => {
              config.value = next;
            }}
          />
        )}
        {kind === 'endpoint' && <EndpointFields edited={edited} />}
        {kind === 'command' && <CommandFields edited={edited} />}
        {kind !== 'definition' && <EraField edited={edited} />}
        {kind !== 'definition' && (
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
        )}
        {error.value !== undefined && <Failure text={error.value} />}
        {result.value !== undefined && <Outcome result={result.value} />}
        <div class="actions">
          {kind !== 'definition' && (
            <button type="button" disabled={busy.value !== undefined} onClick={onTest}>
              {busy.value === 'test' ? 'Testing…' : 'Test the connection'}
            </button>
          )}
          <button type="submit" class="primary" disabled={busy.value !== undefined}>
            {edited === undefined ? 'Register' : 'Save'}
          </button>
        </div>
      </form>
    </>
  );
}

const KINDS: readonly (readonly [RegistrationKind, string])[] = [
  ['definition', 'Template definition'],
  ['endpoint', 'Endpoint'],
  ['command', 'Command'],
];

async function save(path: string, body: object): Promise<void> {
  const instance = await change<Instance>('POST', path, body);
  notify(`${instance.id} is saved.`);
  readAll();
  navigate(href('template', { name: instance.template_name }));
}

function NoCommands() {
  return (
    <p class="callout warn">
      <Icon name="warn" />
      <span>
        While authentication is off, the gateway takes commands from the command line of its machine only, not
        from a browser: <code>stagedoor gateway register</code>.
      </span>
    </p>
  );
}

interface EditedProps {
  readonly edited: Instance | undefined;
}

function EndpointFields({ edited }: EditedProps) {
  return (
    <>
      <Field label="URL" isRequired hint="URL of a running server. Without a path, /mcp is added.">
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
          <option value="http">Streamable HTTP</option>
          <option value="sse">HTTP+SSE (older)</option>
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

function EraField({ edited }: EditedProps) {
  return (
    <Field label="Protocol era" hint="Choose one only if the server answers wrongly in the other.">
      <select name="era" defaultValue={edited?.era === 'auto' ? '' : edited?.era}>
        <option value="">Found out (auto)</option>
        <option value="legacy">Legacy, up to 2025-11-25</option>
        <option value="modern">Modern, from 2026-07-28</option>
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

function kindOf(edited: Instance | undefined): 'endpoint' | 'command' {
  return edited !== undefined && edited.command !== null ? 'command' : 'endpoint';
}

function CommandFields({ edited }: EditedProps) {
  return (
    <>
      <Field label="Command" isRequired hint="The program and its arguments, run without a shell.">
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
        hint={`One per line, as NAME=value. It is stored encrypted.${edited === undefined ? '' : AGAIN}`}
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

function Outcome({ result }: { readonly result: TestResult }) {
  const { ok, server, tools = 0, duration_ms: durationMs, detail, stderr = [], era } = result;
  const took = `${Math.round(durationMs)} ms`;
  return (
    <div class={`callout ${ok ? 'ok' : 'bad'}`} role="status">
      <Icon name={ok ? 'healthy' : 'bad'} />
      <div>
        {ok
          ? `Connected: ${server === undefined ? 'an MCP server' : `${server.name} ${server.version}`}, ${plural(tools, 'tool')}, ${era} era, ${took}.`
          : `${detail ?? 'The server does not answer.'} (${took})`}
        {stderr.length > 0 && <pre class="output">{stderr.join('\n')}</pre>}
      </div>
    </div>
  );
}

interface RegisterBody {
  readonly template_name: string;
  readonly instance: Readonly<Record<string, unknown>>;
}

/** Empty fields are omitted. Throws for a line that is not a pair. */
function bodyOf(
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
          secret_env_vars: edited?.secret_env_vars,
        };
  const metadata = edited === undefined ? {} : { metadata: edited.metadata };
  const all = {
    id: text('id'),
    ...metadata,
    era: text('era'),
    ...fields,
    ...(weight === '' ? {} : { weight: Number(weight) }),
  };
  const instance = Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== '' && value !== undefined),
  );
  return { template_name: text('template'), instance };
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
