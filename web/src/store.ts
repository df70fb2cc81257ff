// The present state of the gateway: templates, instances, and the counts of the last minutes. Events announce
// changes: states are taken from them at once (instance-updates.ts), and the records are read again, so that a missed
// event does no lasting harm. Samples bring the numbers.

import { batch, computed, effect, type Signal, signal } from '@preact/signals';
import { account, hasExpired } from './account.ts';
import { ApiError, get, messageOf } from './api.ts';
import { Calls } from './calls.ts';
import { EventStream } from './events.ts';
import { type InstanceUpdate, stateUpdate, updateOf } from './instance-updates.ts';
import { LastMinute } from './minute.ts';
import { Newest } from './newest.ts';
import type {
  GatewayEvent,
  HistoryPoint,
  Instance,
  InstanceSample,
  LoadBalancer,
  NodesAnswer,
  RegistryAnswer,
  Sample,
  TemplateSample,
  Withheld,
} from './types.ts';

/** The time that the charts show. */
const KEPT_MS = 300_000;
/** The most changed instances that are read one by one; with more, the whole registry is read instead. */
const SINGLE_READS = 8;
const FIRST_READ_MS = 30;
const NEXT_READ_MS = 300;
/** Reads count against the rate limit of the account: this many may follow each other, further ones are rare. */
const READS_AT_ONCE = 12;
const RARE_READ_MS = 8_000;

const ALWAYS = ['gateway.started', 'gateway.sampled', 'instance', 'session', 'template', 'registry', 'tool'];

export const balancers = signal<ReadonlyMap<string, LoadBalancer> | undefined>(undefined);
/** The items that the lists of all templates leave out, by template. */
export const withheld = signal<ReadonlyMap<string, readonly Withheld[]>>(new Map());
const instances = signal<ReadonlyMap<string, Instance>>(new Map());
/** Grows when tools of a pinned template or view change, or are approved. */
export const toolChanges = signal(0);
export const stateError = signal<string | undefined>(undefined);

/** The nodes of the deployment, as they were last read. */
export const nodes = signal<{ readonly answer?: NodesAnswer | undefined; readonly error?: string }>({});
/** True when there is more than one node, or was within the last half hour. */
export const hasNodes = computed(() => (nodes.value.answer?.nodes.length ?? 0) > 1);

/** Nodes without which the last read of all instances was answered. */
export const missingNodes = signal<readonly string[]>([]);
export const MISSING_READ_MS = 15_000;
let missingTimer: number | undefined;

/** The newest numbers, by server id and by template. */
export const instanceSamples = signal<ReadonlyMap<string, InstanceSample>>(new Map());
export const templateSamples = signal<ReadonlyMap<string, TemplateSample>>(new Map());
/** Totals of the last minutes, since the newest stream began, oldest first. */
export const samples = signal<readonly Sample[]>([]);
/** Totals of the last hour, of 10 s each, oldest first. The gateway keeps them, so they survive a reload. */
export const past = signal<readonly HistoryPoint[]>([]);
const PAST_READ_MS = 60_000;
const lastMinute = { instances: new LastMinute(), templates: new LastMinute() };

export const MANY_RESTARTS = 5;
/** The newest restarts after failures, by server id: ms since 1970, oldest first. */
export const failedRestarts = new Map<string, readonly number[]>();

/** Incremented when sessions changed, so that the page that shows them reads them again. */
export const sessionChanges = signal(0);
/** True while this node cannot read the changes of the other nodes on its database. */
export const isBehind = signal(false);
/** The calls that the activity page shows. */
export const calls = new Calls();

/** Templates and their instances, by name; templates without an instance come last. */
export const templates = computed<ReadonlyMap<string, readonly Instance[]>>(() => {
  const byTemplate = Map.groupBy(instances.value.values(), ({ template_name }) => template_name);
  const names = [...(balancers.value?.keys() ?? [])].sort();
  const used = names.filter((name) => byTemplate.has(name));
  const unused = names.filter((name) => !byTemplate.has(name));
  return new Map([...used, ...unused].map((name) => [name, byTemplate.get(name) ?? []]));
});

/** Requests and failures of the last minute, of an instance by its server id or of a template. */
export function minuteOf(subject: { readonly server: string } | { readonly template: string }) {
  // What shows the sums depends on the samples, which it does not read. It is a call, because the build removes a property that
  // is read and not used (`propertyReadSideEffects`).
  samples.valueOf();
  return 'server' in subject
    ? lastMinute.instances.of(subject.server)
    : lastMinute.templates.of(subject.template);
}

/** The time of the gateway, to the second: the clock of this machine may differ. */
export function gatewayNow(): number {
  return Date.parse(samples.value.at(-1)?.at ?? '') || Date.now();
}

let stream: EventStream | undefined;
let watchesCalls = false;

/** Follows the gateway while an account is signed in. */
export function startStore(): void {
  effect(() => {
    const isSignedIn = Boolean(account.value) && !hasExpired.value;
    stream?.stop();
    stream = isSignedIn ? new EventStream(selection(), { onEvent, onConnect }) : undefined;
    stream?.start();
    // The stream opens with its first event, or after a second.
    if (isSignedIn) readAll();
    clearInterval(pastTimer);
    clearTimeout(missingTimer);
    past.value = [];
    for (const reads of [pastReads, nodesReads]) reads.begin();
    if (!isSignedIn) return;
    nodes.value = {};
    const read = () => void Promise.all([readPast(), readNodes()]);
    read();
    pastTimer = setInterval(read, PAST_READ_MS);
  });
}

let pastTimer: number | undefined;
const pastReads = new Newest();
const nodesReads = new Newest();

/** Reads the kept points. A failure is not shown: the charts continue with new samples, and the next read may succeed. */
async function readPast(): Promise<void> {
  if (document.visibilityState === 'hidden' && past.peek().length > 0) return;
  const isNewest = pastReads.begin();
  const answer = await get<{ readonly points: readonly HistoryPoint[] }>('gateway/history').catch(
    () => undefined,
  );
  if (answer !== undefined && isNewest()) past.value = answer.points;
}

/** A failure is shown on the page of the nodes. */
export async function readNodes(): Promise<void> {
  if (document.visibilityState === 'hidden' && nodes.peek().answer !== undefined) return;
  const isNewest = nodesReads.begin();
  const read = await get<NodesAnswer>('gateway/nodes').then(
    (answer) => ({ answer }),
    (thrown: unknown) => ({ answer: nodes.peek().answer, error: messageOf(thrown) }),
  );
  if (isNewest()) nodes.value = read;
}

/** Reads calls only while a page shows them: they are many. */
export function watchCalls(isWatched: boolean): void {
  watchesCalls = isWatched;
  if (isWatched) calls.clear();
  stream?.select(selection());
}

function selection(): readonly string[] {
  return watchesCalls ? [...ALWAYS, ...OF_CALLS] : ALWAYS;
}

const OF_CALLS = ['call', 'attempt'];

let received: GatewayEvent[] = [];

/** Events that arrive together are shown together: a start of many instances would render the page for each of them. */
function onEvent(event: GatewayEvent): void {
  if (received.push(event) > 1) return;
  setTimeout(() => {
    const events = received;
    received = [];
    batch(() => events.forEach(apply));
  });
}

function apply(event: GatewayEvent): void {
  const { type } = event;
  if (type === 'gateway.sampled') addSample(event as GatewayEvent & Sample);
  else if (OF_CALLS.some((group) => type.startsWith(`${group}.`))) calls.add(event);
  else if (type.startsWith('instance.')) applyToInstance(event, String(event.server_id));
  else if (type.startsWith('session.')) noteSessions();
  else if (type === 'template.changed' || type.startsWith('tool.')) {
    toolChanges.value += 1;
    readAll();
  } else if (type === 'gateway.started') {
    calls.forgetRunning(event.node);
    if (event.node === undefined) isBehind.value = false;
  } else if (type.startsWith('registry.')) {
    if (event.node === undefined) isBehind.value = type === 'registry.behind';
  } else if (type === 'missed') {
    calls.miss(Number(event.count ?? 1)); // without a count: at least one
    readAll();
  }
}

function applyToInstance(event: GatewayEvent, id: string): void {
  if (event.type === 'instance.restarting' && event.is_planned === false)
    noteRestart(id, Date.parse(event.at));
  if (event.node !== undefined) {
    // The record has the states of all nodes; this is that of one.
    changed.note(id);
    return;
  }
  if (event.type === 'instance.deregistered') {
    newerThanRead?.set(id, null);
    removeInstance(id);
    return;
  }
  applyUpdate(id, updateOf(event, instances.peek().get(id)?.state));
  changed.note(id);
}

/** Notes a restart. Kept events may come again. */
function noteRestart(id: string, atMs: number): void {
  const known = failedRestarts.get(id) ?? [];
  if (atMs > (known.at(-1) ?? 0)) failedRestarts.set(id, [...known, atMs].slice(-MANY_RESTARTS));
}

const SESSIONS_MS = 5_000;
let sessionsTimer: number | undefined;
let sessionsReadMs = -SESSIONS_MS;

/** Reads at once, then at a bounded rate: a busy gateway opens sessions all the time. */
function noteSessions(): void {
  if (sessionsTimer !== undefined) return;
  const delayMs = Math.max(FIRST_READ_MS, sessionsReadMs + SESSIONS_MS - performance.now());
  sessionsTimer = setTimeout(() => {
    sessionsTimer = undefined;
    sessionsReadMs = performance.now();
    sessionChanges.value += 1;
  }, delayMs);
}

function addSample(sample: Sample): void {
  // An event was lost, or its state was not read yet.
  for (const { server_id, state } of sample.instances) {
    const known = instances.peek().get(server_id);
    if (known?.state === state || balancers.peek() === undefined) continue;
    applyUpdate(server_id, stateUpdate(state));
    changed.note(server_id);
  }
  const templatesNow = merged(templateSamples.value, sample.templates, ({ template }) => template);
  const instancesNow = merged(instanceSamples.value, sample.instances, ({ server_id }) => server_id);
  // A sample omits values that did not change since the second before, including counts.
  const atMs = Date.parse(sample.at);
  lastMinute.templates.add(atMs, templatesNow);
  lastMinute.instances.add(atMs, instancesNow);
  const recent = isFirstSample
    ? []
    : samples.value.filter(({ at }) => Math.abs(atMs - Date.parse(at)) < KEPT_MS);
  isFirstSample = false;
  samples.value = [...recent, sample];
  templateSamples.value = templatesNow;
  instanceSamples.value = instancesNow;
}

/** True until the first sample of a stream: those before may lie far back, and the gateway kept the points in between. */
let isFirstSample = true;

/** Events may have been lost; the first sample of a stream is complete. */
function onConnect(): void {
  readAll();
  if (samples.value.length > 0) {
    noteSessions();
    void readPast();
  }
  isFirstSample = true;
  templateSamples.value = new Map();
  instanceSamples.value = new Map();
}

function merged<T>(
  known: ReadonlyMap<string, T>,
  changes: readonly T[],
  keyOf: (one: T) => string,
): ReadonlyMap<string, T> {
  if (changes.length === 0) return known;
  const next = new Map(known);
  for (const change of changes) next.set(keyOf(change), change);
  return next;
}

/** Reads changed records: at once, unless changes continue. */
class ChangedState {
  readonly #servers = new Set<string>();
  #isAll = false;
  #timer: number | undefined;
  #lastReadMs = -RARE_READ_MS;
  /** Number of reads that may follow at once. */
  #credit = READS_AT_ONCE;

  /** Notes that this instance changed; without an id, anything may have changed. */
  note(serverId?: string): void {
    if (serverId === undefined) this.#isAll = true;
    else this.#servers.add(serverId);
    if (this.#timer !== undefined) return;
    const quietMs = performance.now() - this.#lastReadMs;
    this.#credit = Math.min(READS_AT_ONCE, this.#credit + quietMs / RARE_READ_MS) - 1;
    const pauseMs = this.#credit > 0 ? NEXT_READ_MS : RARE_READ_MS;
    const delayMs = Math.max(FIRST_READ_MS, pauseMs - quietMs);
    this.#timer = setTimeout(() => void this.#read(), delayMs);
  }

  async #read(): Promise<void> {
    this.#lastReadMs = performance.now();
    const servers = [...this.#servers];
    const isAll = this.#isAll || servers.length > SINGLE_READS;
    this.#servers.clear();
    this.#isAll = false;
    newerThanRead = new Map();
    try {
      if (isAll) await readRegistry();
      else await Promise.all(servers.map(readServer));
      stateError.value = undefined;
    } catch (thrown) {
      stateError.value = messageOf(thrown);
    } finally {
      newerThanRead = undefined;
      this.#timer = undefined;
      // Instances that changed during the read.
      if (this.#isAll || this.#servers.size > 0) this.note([...this.#servers].at(0));
    }
  }
}

const changed = new ChangedState();

/** Reads one instance again: events do not contain all fields of its record. */
export function readInstance({ server_id }: Instance): void {
  changed.note(server_id);
}

/** Schedules a read of the whole state. */
export function readAll(): void {
  changed.note();
}

async function readRegistry(): Promise<void> {
  const registry = await get<RegistryAnswer>('gateway/registry');
  const entries = Object.entries(registry.templates);
  const { partial = [] } = registry;
  clearTimeout(missingTimer);
  // No event says that a node answers again.
  if (partial.length > 0) missingTimer = setTimeout(readAll, MISSING_READ_MS);
  batch(() => {
    missingNodes.value = partial;
    balancers.value = new Map(entries.map(([name, { load_balancer }]) => [name, load_balancer]));
    withheld.value = new Map(entries.map(([name, template]) => [name, template.withheld ?? []]));
    const all = entries.flatMap(([, template]) => template.instances).flatMap(withUpdate);
    instances.value = new Map(all.map((instance) => [instance.server_id, instance]));
  });
}

async function readServer(id: string): Promise<void> {
  try {
    const instance = await get<Instance>(`servers/${encodeURIComponent(id)}`);
    if (balancers.value?.has(instance.template_name)) withUpdate(instance).forEach(storeInstance);
    else readAll();
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
    removeInstance(id);
  }
}

/** Changes from events during a read, by server id; they are newer than the records. Null: the instance is gone. */
let newerThanRead: Map<string, InstanceUpdate | null> | undefined;

function applyUpdate(id: string, update: InstanceUpdate): void {
  newerThanRead?.set(id, { ...newerThanRead.get(id), ...update });
  const known = instances.peek().get(id);
  if (known !== undefined) storeInstance({ ...known, ...update });
}

/** The instance with newer changes; none if it is gone. */
function withUpdate(instance: Instance): readonly Instance[] {
  const update = newerThanRead?.get(instance.server_id);
  return update === null ? [] : [{ ...instance, ...update }];
}

/** Stores an instance as the gateway answered it. */
export function storeInstance(instance: Instance): void {
  instances.value = new Map(instances.value).set(instance.server_id, instance);
}

function removeInstance(id: string): void {
  failedRestarts.delete(id);
  for (const known of [instances, instanceSamples] as readonly Signal<ReadonlyMap<string, unknown>>[]) {
    const rest = new Map(known.value);
    if (rest.delete(id)) known.value = rest;
  }
}
