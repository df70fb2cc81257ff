// One template: its instances, the state of each with its reason, and the distribution of calls.

import { useSignal } from '@preact/signals';
import { mayCall, mayWrite } from '../account.ts';
import { command, deleteTemplate, setTemplate, setWeight } from '../actions.ts';
import { get } from '../api.ts';
import { milliseconds, percent, plural } from '../format.ts';
import { Approvals } from '../parts/approvals.tsx';
import { Bar, Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { InstanceDrawer } from '../parts/instance-drawer.tsx';
import { useLoaded } from '../parts/load.ts';
import { isNarrow } from '../parts/screen.ts';
import { Search } from '../parts/search.tsx';
import { AccountsLink, StateBadge } from '../parts/state.tsx';
import { Empty, Failure, Loading, Partial } from '../parts/status.tsx';
import { TemplateAccount, type TemplateAuth } from '../parts/template-account.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { href, navigatorFromHere, route, setParams } from '../router.ts';
import { type Control, controlOf, numberOf, type Schema, textOf } from '../schema.ts';
import {
  balancers,
  hasNodes,
  instanceSamples,
  minuteOf,
  missingNodes,
  readAll,
  stateError,
  templates,
} from '../store.ts';
import type { Instance, LoadBalancer } from '../types.ts';

export function TemplatePage() {
  const name = route.value.params.get('name') ?? '';
  const members = templates.value.get(name);
  const balancer = balancers.value?.get(name);
  if (balancers.value === undefined) {
    const error = stateError.value;
    return error === undefined ? <Loading what="instances" /> : <Failure text={error} onRetry={readAll} />;
  }
  if (members === undefined || balancer === undefined) {
    return (
      <>
        <h1>{name}</h1>
        <Empty title="Template not found.">
          <a href={href('overview')}>Go to the overview</a>
        </Empty>
      </>
    );
  }
  return <TemplateView key={name} name={name} members={members} balancer={balancer} />;
}

interface TemplateProps {
  readonly name: string;
  readonly members: readonly Instance[];
}

function TemplateView({ name, members, balancer }: TemplateProps & { readonly balancer: LoadBalancer }) {
  const open = members.find(({ id }) => id === route.value.params.get('instance'));
  const { data, reload } = useLoaded(() => get<TemplateRecord>(`gateway/templates/${name}`), [name]);
  return (
    <>
      <Partial nodes={missingNodes.value} />
      <nav aria-label="Breadcrumb" class="crumbs">
        <a href={href('overview')}>Overview</a>
      </nav>
      <div class="title">
        <h1>{name}</h1>
        <div class="actions">
          {mayCall.value && members.length > 0 && (
            <a class="button" href={href('playground', { template: name })}>
              <Icon name="playground" />
              Try its tools
            </a>
          )}
          <a class="button" href={href('connect', { template: name })}>
            <Icon name="connect" />
            Connect
          </a>
          {mayWrite.value && (
            <a class="button primary" href={href('register', { template: name })}>
              <Icon name="plus" />
              Register an instance
            </a>
          )}
        </div>
      </div>
      {data?.description && <p class="lead">{data.description}</p>}
      <Instances name={name} members={members} />
      {mayWrite.value && balancer.approve === 'pinned' && (
        <Approvals path={`gateway/templates/${name}`} what="template" />
      )}
      <Balancer name={name} balancer={balancer} />
      {data && <TemplateAccount name={name} auth={data.auth} onChanged={reload} />}
      {mayWrite.value && <Deletion name={name} members={members} />}
      {open && <InstanceDrawer instance={open} onClose={() => closeInstance(open)} />}
    </>
  );
}

/** Unless another one, or another page, was opened since. */
function closeInstance({ id, template_name }: Instance): void {
  const { params } = route.value;
  if (params.get('name') === template_name && params.get('instance') === id)
    setParams({ instance: undefined });
}

function Deletion({ name, members }: TemplateProps) {
  const asks = useSignal(false);
  const isUsed = members.length > 0;
  return (
    <div class="actions">
      <button
        type="button"
        class="danger"
        disabled={isUsed}
        onClick={() => {
          asks.value = true;
        }}
      >
        Delete the template
      </button>
      {isUsed && <span class="muted">Deregister its instances first.</span>}
      {asks.value && (
        <Confirm
          title={`Delete ${name}?`}
          text="Its settings are removed. A template of a definition file is listed again, with its defaults."
          action="Delete"
          run={async () => {
            const leave = navigatorFromHere();
            await deleteTemplate(name);
            leave(href('overview'));
          }}
          done={`${name} is deleted.`}
          onDone={readAll}
          onClose={() => {
            asks.value = false;
          }}
        />
      )}
    </div>
  );
}

interface TemplateRecord {
  readonly description: string | null;
  readonly auth: TemplateAuth | null;
}

function Instances({ name, members }: TemplateProps) {
  const filter = useSignal('');
  const wanted = filter.value;
  const shown = members.filter(({ id, state }) => id.toLowerCase().includes(wanted) || state === wanted);
  const total = minuteOf({ template: name }).requests;
  if (members.length === 0) {
    return (
      <Empty title="This template has no instance yet.">
        {mayWrite.value && <a href={href('register', { template: name })}>Register an instance</a>}
      </Empty>
    );
  }
  return (
    <section aria-labelledby="instances">
      <div class="title">
        <h2 id="instances">{plural(members.length, 'instance')}</h2>
        <Search
          label="Filter instances by name or state"
          placeholder="Name or state"
          count={members.length}
          filter={filter}
        />
      </div>
      <div class="panel table instances">
        <div class="head" aria-hidden="true">
          <span>Instance</span>
          <span>State</span>
          <span>Calls, 1 min</span>
          <span class="number">In flight</span>
          <span class="number">Latency</span>
          <span class="number">Score</span>
          <span class="number" title="In the last minute">
            Failed
          </span>
          <span class="number">Restarts</span>
          <span>Weight</span>
          <span />
        </div>
        {shown.length === 0 && <Empty title="No instance matches." />}
        <VirtualList
          items={shown}
          keyOf={({ server_id }) => server_id}
          rowHeight={isNarrow.value ? 204 : 64}
          label="Instances"
        >
          {(instance) => <InstanceRow instance={instance} total={total} />}
        </VirtualList>
      </div>
    </section>
  );
}

interface InstanceRowProps {
  readonly instance: Instance;
  /** Calls of the template in the last minute. */
  readonly total: number;
}

function InstanceRow({ instance, total }: InstanceRowProps) {
  const { id, server_id, template_name: name, reason, ejection } = instance;
  const sample = instanceSamples.value.get(server_id);
  const { requests, failures } = minuteOf({ server: server_id });
  const why = ejection?.reason ?? reason;
  return (
    <div class="row">
      <div class="cell-name">
        <a class="strong" href={href('template', { name, instance: id })}>
          {id}
        </a>
        <div class="cut small muted">
          {hasNodes.value && placeOf(instance)}
          {addressOf(instance)}
        </div>
      </div>
      <div class="cell-state">
        <StateBadge instance={instance} />
        {why && (
          <div class="cut small muted" title={why}>
            <AccountsLink instance={instance} /> {why}
          </div>
        )}
      </div>
      <span class="share">
        <span class="key">calls</span>
        <Bar part={total === 0 ? 0 : requests / total} />
        {percent(requests, total)}
      </span>
      <Cell name="in flight">{sample?.in_flight ?? instance.in_flight}</Cell>
      <Cell name="latency">{milliseconds(sample?.latency_ms)}</Cell>
      <Cell name="score">
        {sample === undefined || sample.latency_ms === null ? '–' : Math.round(sample.score)}
      </Cell>
      <Cell name="failed" tone={failures > 0 ? 'bad' : undefined}>
        {failures}
      </Cell>
      <Cell name="restarts">{sample?.restarts ?? instance.restarts}</Cell>
      <Weight instance={instance} />
      <RowActions instance={instance} />
    </div>
  );
}

/** The endpoint of the instance, or its command. */
function addressOf({ endpoint, command: program, args, transport }: Instance): string {
  return endpoint ?? (program === null ? transport : [program.replace(/^.*\//, ''), ...args].join(' '));
}

/** The node that runs it, if it is a program. */
function placeOf({ node_id, running_on = node_id }: Instance): string {
  return running_on === null ? '' : `on ${running_on}: `;
}

function Weight({ instance }: { readonly instance: Instance }) {
  const draft = useSignal<string | undefined>(undefined);
  if (!mayWrite.value) return <Cell name="weight">{instance.weight}</Cell>;
  const save = async (input: HTMLInputElement): Promise<void> => {
    if (!input.reportValidity()) return;
    const { value } = input;
    if (Number(value) !== instance.weight) await setWeight(instance, Number(value));
    if (draft.value === value) draft.value = undefined;
  };
  return (
    <label class="weight">
      <span class="key">weight</span>
      <input
        type="number"
        required
        min={1}
        max={1_000}
        aria-label={`Weight of ${instance.id}`}
        value={draft.value ?? instance.weight}
        onInput={(event) => {
          draft.value = event.currentTarget.value;
        }}
        onChange={(event) => void save(event.currentTarget)}
      />
    </label>
  );
}

function RowActions({ instance }: { readonly instance: Instance }) {
  if (!mayWrite.value) return <span />;
  const isOff = instance.state === 'draining' || instance.state === 'stopped';
  const name = isOff ? 'resume' : 'drain';
  return (
    <span class="actions end">
      <button
        type="button"
        class="small"
        aria-label={`${isOff ? 'Resume' : 'Drain'} ${instance.id}`}
        onClick={() => void command(instance, name)}
      >
        {isOff ? 'Resume' : 'Drain'}
      </button>
    </span>
  );
}

interface Setting {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly schema: Schema;
}

function Balancer({ name, balancer }: { readonly name: string; readonly balancer: LoadBalancer }) {
  const { data, error, reload } = useLoaded(
    () => get<{ readonly settings: readonly Setting[] }>('gateway/template-settings'),
    [],
  );
  return (
    <section aria-labelledby="balancer">
      <h2 id="balancer">Load balancing</h2>
      {error !== undefined && <Failure text={error} onRetry={reload} />}
      <div class="panel padded form">
        <div class="columns">
          {data?.settings.map(({ name: setting, title, description, schema }) => (
            <Field key={setting} label={title} hint={hintOf(description, schema, balancer[setting])}>
              <SettingInput
                schema={schema}
                value={balancer[setting]}
                onSet={(value) => setTemplate(name, { [setting]: value })}
              />
            </Field>
          ))}
        </div>
      </div>
    </section>
  );
}

/** The description, with the meaning of the chosen word. */
function hintOf(description: string, schema: Schema, chosen: unknown): string {
  const control = controlOf(schema);
  if (control.kind !== 'choice') return description;
  const label = control.choices.find(({ value }) => value === chosen)?.label ?? '';
  return label.includes(': ') ? `${description} ${label}.` : description;
}

interface SettingInputProps {
  readonly id?: string;
  readonly schema: Schema;
  readonly value: unknown;
  /** False: the value could not be set. */
  readonly onSet: (value: unknown) => Promise<boolean>;
}

/** A value that is set when the field is left. */
function SettingInput({ schema, value, onSet, ...rest }: SettingInputProps) {
  const control = controlOf(schema);
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  const onChange = async ({ currentTarget: field }: { readonly currentTarget: FormField }): Promise<void> => {
    const written = field.value;
    const next = readOf(control, written);
    field.setCustomValidity(next === undefined ? 'Invalid JSON' : '');
    if (field.reportValidity() && !(await onSet(next)) && field.value === written) field.value = shown;
  };
  const common = { ...rest, disabled: !mayWrite.value, required: true, onChange };
  if (control.kind === 'choice') {
    return (
      <select {...common} value={shown}>
        {control.choices.map((choice) => (
          <option key={choice.label} value={String(choice.value)} title={choice.label}>
            {String(choice.value)}
          </option>
        ))}
      </select>
    );
  }
  if (control.kind === 'json')
    return <textarea key={shown} {...common} class="mono" spellcheck={false} defaultValue={shown} />;
  if (control.kind === 'text')
    return <input key={shown} {...common} pattern={textOf(schema, 'pattern')} defaultValue={shown} />;
  return (
    <input
      key={shown}
      {...common}
      type="number"
      min={numberOf(schema, 'minimum')}
      max={numberOf(schema, 'maximum')}
      defaultValue={shown}
    />
  );
}

type FormField = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** Undefined for text that is not JSON, where the value is JSON. */
function readOf({ kind }: Control, text: string): unknown {
  if (kind === 'number') return Number(text);
  if (kind !== 'json') return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the field says so
  }
}
