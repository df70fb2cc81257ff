// Registers an instance: by the definition of its template, an endpoint, or a command that the gateway runs.
// The connection of the latter two can be tested before they are registered.

import { type Signal, useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { isOpen, mayWrite } from '../account.ts';
import { change, get, ifMatch, isOutdated, messageOf } from '../api.ts';
import { plural } from '../format.ts';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import {
  bodyOf,
  CommandFields,
  EndpointFields,
  EraField,
  InstanceNameField,
  kindOf,
  type RegisterBody,
  WeightField,
} from '../parts/instance-fields.tsx';
import { useLoaded } from '../parts/load.ts';
import { notify } from '../parts/notices.tsx';
import { SchemaFields } from '../parts/schema-form.tsx';
import { Segments } from '../parts/segments.tsx';
import { Empty, Failure, Loading, Outdated } from '../parts/status.tsx';
import { href, navigatorFromHere, route } from '../router.ts';
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
  const { params } = route.value;
  const [template, id] = [params.get('template') ?? '', params.get('instance')];
  if (!mayWrite.value) return <Empty title="Your account may not register instances." />;
  if (id === null) return <RegisterForm key="" name={template} />;
  const path = [template, id].map(encodeURIComponent).join('/');
  return <EditPage key={path} path={`gateway/instances/${path}`} id={id} />;
}

/** Changes the version of an instance that is read now, and no later one. */
function EditPage({ path, id }: { readonly path: string; readonly id: string }) {
  const { data, error, reload } = useLoaded(() => get<Instance>(path), []);
  if (data !== undefined && error === undefined)
    return <RegisterForm key={data.updated_at} name={data.template_name} edited={data} onReload={reload} />;
  return (
    <>
      <h1>Edit {id}</h1>
      {error === undefined ? <Loading what="the instance" /> : <Failure text={error} onRetry={reload} />}
    </>
  );
}

interface RegisterFormProps {
  /** The name of the template, which is entered when an instance is registered. */
  readonly name: string;
  readonly edited?: Instance;
  readonly onReload?: () => void;
}

function RegisterForm({ name, edited, onReload }: RegisterFormProps) {
  const template = useSignal(name);
  const chosen = useSignal<RegistrationKind | undefined>(undefined);
  const config = useSignal<unknown>(undefined);
  const sending = useSending();
  const definition = useDefinition(template.value);
  const isDefinable = definition !== undefined && edited === undefined;
  const usual = isDefinable ? 'definition' : kindOf(edited);
  const kind = chosen.value === 'definition' ? usual : (chosen.value ?? usual);
  const schema = definition?.config_schema ?? {};
  const entered = config.value ?? initialValue(schema) ?? {};
  const register = (form: HTMLFormElement): Promise<void> =>
    sending.run('save', () =>
      kind === 'definition'
        ? save('servers', { template_name: template.value, config: entered })
        : saveInstance(bodyOf(form, kind, edited), edited),
    );
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    void register(event.currentTarget as HTMLFormElement);
  };
  return (
    <>
      <Heading edited={edited} />
      <form class="panel padded narrow" onSubmit={onSubmit}>
        <div class="columns">
          <TemplateField
            name={template.value}
            isFixed={edited !== undefined}
            onInput={(name) => {
              template.value = name;
              config.value = undefined;
            }}
          />
          {kind !== 'definition' && <InstanceNameField edited={edited} />}
        </div>
        <KindButtons
          kind={kind}
          isDefinable={isDefinable}
          onChoose={(next) => {
            chosen.value = next;
            sending.forget();
          }}
        />
        {kind !== 'endpoint' && isOpen.value && <NoCommands />}
        {kind === 'definition' ? (
          <DefinitionFields key={template.value} schema={schema} value={entered} config={config} />
        ) : (
          <ConnectionFields kind={kind} edited={edited} />
        )}
        {isOutdated(sending.error) ? (
          <Outdated what="instance" onReload={onReload} />
        ) : (
          sending.error !== undefined && <Failure text={messageOf(sending.error)} />
        )}
        {sending.result !== undefined && <Outcome result={sending.result} />}
        <Actions kind={kind} edited={edited} sending={sending} />
      </form>
    </>
  );
}

function Heading({ edited }: { readonly edited: Instance | undefined }) {
  return (
    <>
      <h1>{edited === undefined ? 'Register an instance' : `Edit ${edited.id}`}</h1>
      {edited !== undefined && (
        <p class="lead">
          The instance is replaced in place: running calls finish, then new ones use the new settings.
        </p>
      )}
    </>
  );
}

interface DefinitionFieldsProps {
  readonly schema: Schema;
  readonly value: unknown;
  /** Gets what is entered. */
  readonly config: Signal<unknown>;
}

function DefinitionFields({ schema, value, config }: DefinitionFieldsProps) {
  return (
    <SchemaFields
      schema={schema}
      root={schema}
      value={value}
      onChange={(next) => {
        config.value = next;
      }}
    />
  );
}

interface ConnectionFieldsProps {
  readonly kind: 'endpoint' | 'command';
  readonly edited: Instance | undefined;
}

function ConnectionFields({ kind, edited }: ConnectionFieldsProps) {
  return (
    <>
      {kind === 'endpoint' ? <EndpointFields edited={edited} /> : <CommandFields edited={edited} />}
      <EraField edited={edited} />
      <WeightField edited={edited} />
    </>
  );
}

type Sending = ReturnType<typeof useSending>;

/** The last request, which is a test or the registration, with its result or error. One is sent at a time. */
function useSending() {
  const busy = useSignal<'test' | 'save' | undefined>(undefined);
  const result = useSignal<TestResult | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const round = useRef(0);
  const run = async (what: 'test' | 'save', send: () => Promise<TestResult | undefined>): Promise<void> => {
    forget();
    const mine = round.current;
    busy.value = what;
    const isWanted = (): boolean => mine === round.current; // unless it is a test that was given up
    try {
      const found = await send();
      if (isWanted()) result.value = found;
    } catch (thrown) {
      if (isWanted()) error.value = thrown;
    } finally {
      if (isWanted()) busy.value = undefined;
    }
  };
  const forget = (): void => {
    if (busy.value === 'save') return;
    round.current += 1;
    busy.value = undefined;
    result.value = undefined;
    error.value = undefined;
  };
  return { busy: busy.value, result: result.value, error: error.value, run, forget };
}

/** The definition of a template; undefined while it is read, and where there is none. */
function useDefinition(template: string): Definition | undefined {
  const name = templates.value.has(template) ? template : undefined;
  const { data } = useLoaded(
    async () => name && { ...(await get<Definition>(`gateway/templates/${name}`)), name },
    [name],
  );
  // `data` is that of the previous name until the definition is read, and if that fails.
  return data && data.name === name && data.is_defined ? data : undefined;
}

interface TemplateFieldProps {
  readonly name: string;
  readonly isFixed: boolean;
  readonly onInput: (name: string) => void;
}

function TemplateField({ name, isFixed, onInput }: TemplateFieldProps) {
  return (
    <>
      <Field label="Template" isRequired hint="The name that clients call. Its instances share the calls.">
        <input
          name="template"
          required
          readOnly={isFixed}
          list="template-names"
          pattern="[a-z][a-z0-9\-]*"
          title="Lower-case letters, digits and hyphens"
          value={name}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      </Field>
      <datalist id="template-names">
        {[...templates.value.keys()].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

interface KindButtonsProps {
  readonly kind: RegistrationKind;
  readonly isDefinable: boolean;
  readonly onChoose: (kind: RegistrationKind) => void;
}

function KindButtons({ kind, isDefinable, onChoose }: KindButtonsProps) {
  return (
    <Segments
      label="Kind of instance"
      options={KINDS.filter(([value]) => value !== 'definition' || isDefinable)}
      value={kind}
      onChoose={onChoose}
    />
  );
}

interface ActionsProps {
  readonly kind: RegistrationKind;
  readonly edited: Instance | undefined;
  readonly sending: Sending;
}

function Actions({ kind, edited, sending }: ActionsProps) {
  return (
    <div class="actions">
      {kind !== 'definition' && (
        <TestButton sending={sending} bodyOf={(form) => bodyOf(form, kind, edited)} />
      )}
      <button type="submit" class="primary" disabled={sending.busy !== undefined}>
        {edited === undefined ? 'Register' : 'Save'}
      </button>
    </div>
  );
}

interface TestButtonProps {
  readonly sending: Sending;
  readonly bodyOf: (form: HTMLFormElement) => object;
}

/** The button of the test. It does not submit, because Enter would press the first button that does. */
function TestButton({ sending, bodyOf }: TestButtonProps) {
  const onTest = ({ currentTarget: { form } }: { readonly currentTarget: HTMLButtonElement }): void => {
    if (form?.reportValidity())
      void sending.run('test', () => change<TestResult>('POST', 'gateway/test', bodyOf(form)));
  };
  return (
    <button type="button" disabled={sending.busy !== undefined} onClick={onTest}>
      {sending.busy === 'test' ? 'Testing…' : 'Test the connection'}
    </button>
  );
}

const KINDS: readonly (readonly [RegistrationKind, string])[] = [
  ['definition', 'Template definition'],
  ['endpoint', 'Endpoint'],
  ['command', 'Command'],
];

/** Throws for the name of another instance, which the gateway would replace. */
async function saveInstance(body: RegisterBody, edited: Instance | undefined): Promise<undefined> {
  const { template_name: name, instance } = body;
  const isTaken = templates.value.get(name)?.some(({ id }) => id === instance.id) === true;
  if (edited === undefined && isTaken)
    throw new Error(
      `The template ${name} has an instance ${instance.id} already: edit it, or choose another name.`,
    );
  return save('gateway/register', body, edited);
}

/** Leaves the page for that of the template. */
async function save(path: string, body: object, edited?: Instance): Promise<undefined> {
  const leave = navigatorFromHere();
  const instance = await change<Instance>('POST', path, body, edited && ifMatch(edited.updated_at));
  notify(`${instance.id} is saved.`);
  readAll();
  leave(href('template', { name: instance.template_name }));
}

function NoCommands() {
  return (
    <p class="callout warn">
      <Icon name="warn" />
      <span>
        While authentication is off, the gateway takes commands from the command line of its machine only, not
        from a browser: <code>stagedoor instance register</code>.
      </span>
    </p>
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
