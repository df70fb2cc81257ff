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
import { Empty, Failure } from '../parts/status.tsx';
import { href, navigate, route } from '../router.ts';
import { initialValue, type Schema } from '../schema.ts';
import { readAll, templates } from '../store.ts';
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
  const { data } = useLoaded(
    async () => name && { ...(await get<Definition>(`gateway/templates/${name}`)), name },
    [name],
  );
  if (!mayWrite.value) return <Empty title="Your account may not register instances." />;

  // Until it is read, and if that fails, `data` is that of the previous name.
  const definition = data && data.name === name && data.is_defined ? data : undefined;
  const usual = definition === undefined ? 'endpoint' : 'definition';
  const kind = chosen.value === 'definition' ? usual : (chosen.value ?? usual);
  const schema = definition?.config_schema ?? {};
  const run = async (action: 'test' | 'save', form: HTMLFormElement): Promise<void> => {
    busy.value = action;
    result.value = undefined;
    error.value = undefined;
    try {
      if (kind === 'definition')
        await save('servers', { template_name: template.value, config: config.value ?? {} });
      else if (action === 'save') await save('gateway/register', bodyOf(form, kind));
      else result.value = await change<TestResult>('POST', 'gateway/test', bodyOf(form, kind));
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      busy.value = undefined;
    }
  };
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const isTest = event.submitter instanceof HTMLButtonElement && event.submitter.value === 'test';
    void run(isTest ? 'test' : 'save', event.currentTarget as HTMLFormElement);
  };
  return (
    <>
      <h1>Register an instance</h1>
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
              <input name="id" pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" />
            </Field>
          )}
        </div>
        <datalist id="template-names">
          {[...templates.value.keys()].map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <fieldset class="segments wide" aria-label="Kind of instance">
          {KINDS.map(([value, text]) =>
            value === 'definition' && definition === undefined ? null : (
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
        {kind === 'endpoint' && <EndpointFields />}
        {kind === 'command' && <CommandFields />}
        {kind !== 'definition' && <EraField />}
        {kind !== 'definition' && (
          <Field label="Weight" hint="1 to 1,000, used by weighted round robin.">
            <input name="weight" type="number" min={1} max={1_000} placeholder="1" class="short" />
          </Field>
        )}
        {error.value !== undefined && <Failure text={error.value} />}
        {result.value !== undefined && <Outcome result={result.value} />}
        <div class="actions">
          {kind !== 'definition' && (
            <button type="submit" value="test" disabled={busy.value !== undefined}>
              {busy.value === 'test' ? 'Testing…' : 'Test the connection'}
            </button>
          )}
          <button type="submit" class="primary" value="save" disabled={busy.value !== undefined}>
            {busy.value === 'save' ? 'Registering…' : 'Register'}
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
  notify(`${instance.id} is registered.`);
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

function EndpointFields() {
  return (
    <>
      <Field label="URL" isRequired hint="URL of a running server. Without a path, /mcp is added.">
        <input name="endpoint" type="url" required placeholder="http://127.0.0.1:3001/mcp" />
      </Field>
      <Field label="Transport">
        <select name="transport" class="short">
          <option value="">Detect automatically</option>
          <option value="http">Streamable HTTP</option>
          <option value="sse">HTTP+SSE (older)</option>
        </select>
      </Field>
      <Field label="Headers" hint="One per line, as Name: value. They are stored encrypted.">
        <textarea name="headers" class="mono" placeholder="Authorization: Bearer …" spellcheck={false} />
      </Field>
    </>
  );
}

function EraField() {
  return (
    <Field label="Protocol era" hint="Choose one only if the server answers wrongly in the other.">
      <select name="era">
        <option value="">Found out (auto)</option>
        <option value="legacy">Legacy, up to 2025-11-25</option>
        <option value="modern">Modern, from 2026-07-28</option>
      </select>
    </Field>
  );
}

function CommandFields() {
  return (
    <>
      <Field label="Command" isRequired hint="The program and its arguments, run without a shell.">
        <input
          name="command"
          required
          class="mono"
          placeholder="npx -y @scope/server --flag"
          spellcheck={false}
        />
      </Field>
      <Field label="Working directory">
        <input name="working_dir" class="mono" spellcheck={false} />
      </Field>
      <Field label="Environment" hint="One per line, as NAME=value. It is stored encrypted.">
        <textarea name="env_vars" class="mono" placeholder="API_TOKEN=…" spellcheck={false} />
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

/** Empty fields are omitted. Throws for a line that is no pair. */
function bodyOf(form: HTMLFormElement, kind: 'endpoint' | 'command'): RegisterBody {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  const weight = text('weight');
  const fields =
    kind === 'endpoint'
      ? { endpoint: text('endpoint'), transport: text('transport'), headers: pairs(text('headers'), ':') }
      : {
          command: text('command'),
          working_dir: text('working_dir'),
          env_vars: pairs(text('env_vars'), '='),
        };
  const all = {
    id: text('id'),
    era: text('era'),
    ...fields,
    ...(weight === '' ? {} : { weight: Number(weight) }),
  };
  const instance = Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== '' && value !== undefined),
  );
  return { template_name: text('template'), instance };
}

function pairs(text: string, separator: ':' | '='): Readonly<Record<string, string>> | undefined {
  if (text === '') return undefined;
  const entries = text.split('\n').flatMap((line): [string, string][] => {
    if (line.trim() === '') return [];
    const at = line.indexOf(separator);
    if (at < 1) throw new Error(`"${line}" is invalid: write a name, "${separator}" and a value.`);
    return [[line.slice(0, at).trim(), line.slice(at + 1).trim()]];
  });
  return Object.fromEntries(entries);
}
