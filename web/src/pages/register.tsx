// Registers an instance: an endpoint, or a command that the gateway runs. The connection can be tested before it is kept.

import { useSignal } from '@preact/signals';
import { account, mayWrite } from '../account.ts';
import { change, messageOf } from '../api.ts';
import { plural } from '../format.ts';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { notify } from '../parts/notices.tsx';
import { Empty, Failure } from '../parts/status.tsx';
import { href, navigate, route } from '../router.ts';
import { readAll, templates } from '../store.ts';
import type { Instance } from '../types.ts';

type Kind = 'endpoint' | 'command';

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

export function RegisterPage() {
  const kind = useSignal<Kind>('endpoint');
  const busy = useSignal<'test' | 'save' | undefined>(undefined);
  const result = useSignal<TestResult | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  if (!mayWrite.value) return <Empty title="Your account may not register instances." />;

  const run = async (action: 'test' | 'save', form: HTMLFormElement): Promise<void> => {
    busy.value = action;
    result.value = undefined;
    error.value = undefined;
    try {
      const body = bodyOf(form, kind.value);
      if (action === 'test') result.value = await change<TestResult>('POST', 'gateway/test', body);
      else await save(body);
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
          <Field label="Template" isRequired hint="Clients call it; its instances share the calls.">
            <input
              name="template"
              required
              list="template-names"
              pattern="[a-z][a-z0-9\-]*"
              title="Lower-case letters, digits and hyphens"
              defaultValue={route.value.params.get('template') ?? ''}
            />
          </Field>
          <Field label="Name of the instance" hint="Empty: the gateway makes one.">
            <input name="id" pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" />
          </Field>
        </div>
        <datalist id="template-names">
          {[...templates.value.keys()].map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <KindSwitch
          kind={kind.value}
          onChange={(next) => {
            kind.value = next;
            result.value = undefined;
          }}
        />
        {kind.value === 'endpoint' ? <EndpointFields /> : <CommandFields />}
        <Field label="Weight" hint="1 to 1,000. Counts for the strategy weighted round robin.">
          <input name="weight" type="number" min={1} max={1_000} placeholder="1" class="short" />
        </Field>
        {error.value !== undefined && <Failure text={error.value} />}
        {result.value !== undefined && <Outcome result={result.value} />}
        <div class="actions">
          <button type="submit" value="test" disabled={busy.value !== undefined}>
            {busy.value === 'test' ? 'Testing…' : 'Test the connection'}
          </button>
          <button type="submit" class="primary" value="save" disabled={busy.value !== undefined}>
            {busy.value === 'save' ? 'Registering…' : 'Register'}
          </button>
        </div>
      </form>
    </>
  );
}

async function save(body: RegisterBody): Promise<void> {
  const instance = await change<Instance>('POST', 'gateway/register', body);
  notify(`${instance.id} is registered.`);
  readAll();
  navigate(href('template', { name: instance.template_name }));
}

interface KindSwitchProps {
  readonly kind: Kind;
  readonly onChange: (kind: Kind) => void;
}

function KindSwitch({ kind, onChange }: KindSwitchProps) {
  const option = (value: Kind, text: string) => (
    <button type="button" aria-pressed={kind === value} onClick={() => onChange(value)}>
      {text}
    </button>
  );
  return (
    <fieldset class="segments wide" aria-label="What it is">
      {option('endpoint', 'An endpoint')}
      {option('command', 'A command')}
    </fieldset>
  );
}

function EndpointFields() {
  return (
    <>
      <Field label="URL" isRequired hint="Of a server that runs already. Without a path, /mcp is added.">
        <input name="endpoint" type="url" required placeholder="http://127.0.0.1:3001/mcp" />
      </Field>
      <Field label="Transport">
        <select name="transport" class="short">
          <option value="">Found by the gateway</option>
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

function CommandFields() {
  const isAnonymous = account.value?.kind === 'anonymous';
  return (
    <>
      {isAnonymous && (
        <p class="callout warn">
          <Icon name="warn" />
          <span>
            While authentication is off, the gateway takes commands from the command line of its machine only,
            not from a browser: <code>stagedoor register</code>.
          </span>
        </p>
      )}
      <Field label="Command" isRequired hint="The program and its arguments. No shell reads it.">
        <input
          name="command"
          required
          class="mono"
          placeholder="npx -y @scope/server --flag"
          spellcheck={false}
        />
      </Field>
      <Field label="Working folder">
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
          ? `It answers: ${server === undefined ? 'an MCP server' : `${server.name} ${server.version}`}, ${plural(tools, 'tool')}, ${era} era, ${took}.`
          : `${detail ?? 'It does not answer.'} (${took})`}
        {stderr.length > 0 && <pre class="output">{stderr.join('\n')}</pre>}
      </div>
    </div>
  );
}

interface RegisterBody {
  readonly template_name: string;
  readonly instance: Readonly<Record<string, unknown>>;
}

/** Fields that are empty are left out. Throws for a line that is no pair. */
function bodyOf(form: HTMLFormElement, kind: Kind): RegisterBody {
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
  const all = { id: text('id'), ...fields, ...(weight === '' ? {} : { weight: Number(weight) }) };
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
    if (at < 1) throw new Error(`"${line}" is no pair: write a name, "${separator}" and a value.`);
    return [[line.slice(0, at).trim(), line.slice(at + 1).trim()]];
  });
  return Object.fromEntries(entries);
}
