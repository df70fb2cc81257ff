// Examines the servers of a template as a client uses them: reads every list of an instance, asks an endpoint as
// plain HTTP does, and names its findings by the table of faults. It changes nothing and calls no tool.

import { hasCode, messageOf } from '../../domain/errors/errors.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../../domain/instances/instance.ts';
import { isNetworked, TRANSPORT_TRAITS } from '../../domain/instances/transport-kinds.ts';
import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import { counted } from '../../domain/text.ts';
import type { TaskScheduler, Timing } from '../../domain/time/task-scheduler.ts';
import { addressesIn } from '../../net/network-guard.ts';
import { checkedItem, KEY_FIELDS } from '../../protocol/aggregate/lists/acceptable-items.ts';
import { BackendFetch, type BackendFetchRequest } from '../../vault/backend-fetch.ts';
import type { Gateway } from '../gateway.ts';
import type { Server } from '../gateway-types.ts';
import type { FaultCode, Finding } from './faults.ts';
import { type ProbeTime, probeEndpoint } from './http-probe.ts';

interface Examination {
  readonly instance: string;
  readonly era: string | null;
  /** Numbers of items; without lists that the server does not offer. */
  readonly lists: Readonly<Partial<Record<ListField, number>>>;
  readonly findings: readonly Finding[];
}

interface ExamineOptions extends Timing {
  /** CIDR ranges that are not asked. */
  readonly deniedNetworks: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** Findings of one code and list that are named one by one; the others are counted. */
const NAMED = 20;
/** The time of all messages to one instance: after it a message still under way, and a moment for each list. */
const ALL_MS = 120_000;
const LIST_MS = 30_000;
const MIN_LIST_MS = 1_000;
const LISTS: readonly ListField[] = ['tools', 'prompts', 'resources', 'resourceTemplates'];

/** Examines each instance of this node, and the lists of the healthy ones. Throws TEMPLATE_NOT_FOUND. */
export async function examineTemplate(
  gateway: Pick<Gateway, 'servers' | 'list' | 'instance'>,
  template: string,
  options: ExamineOptions,
): Promise<Examination[]> {
  const fetch = new BackendFetch({
    clock: options.clock,
    isDenied: addressesIn(options.deniedNetworks),
    openNetworks: [],
  });
  const examinations: Examination[] = [];
  for (const server of gateway.servers(template)) {
    options.signal?.throwIfAborted();
    try {
      examinations.push(await examine(gateway, server, fetch, options));
    } catch (thrown) {
      if (!hasCode(thrown, 'SERVER_NOT_FOUND')) throw thrown; // it was deregistered meanwhile
    }
  }
  return examinations;
}

async function examine(
  gateway: Pick<Gateway, 'list' | 'instance'>,
  { definition, snapshot }: Server,
  fetch: BackendFetch,
  { signal, clock, scheduler }: ExamineOptions,
): Promise<Examination> {
  const { template, id } = definition;
  const lists: Partial<Record<ListField, number>> = {};
  const findings: Finding[] = [];
  if (!snapshot.healthy) {
    const silent = snapshot.state === 'starting' ? 'it has not answered so far' : `it is ${snapshot.state}`;
    const why = snapshot.reason ?? silent;
    findings.push({ code: 'no-era', message: `It is not open: ${why.replace(/\.$/, '')}.` });
  }
  const untilMs = clock.now() + ALL_MS;
  findings.push(...(await asPlainHttp(definition, fetch, { signal, now: clock.now, untilMs })));
  for (const field of snapshot.healthy ? LISTS : [])
    try {
      const { items, cut } = await gateway.list(template, field, {
        instanceId: id,
        timeoutMs: Math.min(Math.max(untilMs - clock.now(), MIN_LIST_MS), LIST_MS),
        signal,
      });
      if (items.length > 0) lists[field] = items.length;
      if (cut !== undefined)
        findings.push({
          code: 'cursor-repeats',
          list: field,
          message: `Its list ${field} ends early: ${cut}.`,
        });
      findings.push(...(await faultsOfItems(field, items, scheduler)));
    } catch (thrown) {
      signal?.throwIfAborted();
      findings.push({
        code: 'list-fails',
        list: field,
        message: `Its list ${field} fails: ${messageOf(thrown)}`,
      });
    }
  findings.push(...faultsOfOutput(gateway.instance(template, id).snapshot));
  return { instance: id, era: snapshot.era, lists, findings };
}

/** The faults in the output of a program since it started. */
function faultsOfOutput({ oddOutput }: InstanceSnapshot): Finding[] {
  if (oddOutput === undefined) return [];
  const { lines, idsAsText, arrays } = oddOutput;
  const found: (Finding & { readonly count: number })[] = [
    {
      code: 'stdout-text',
      count: lines,
      message: `It wrote ${counted(lines, 'line')} to standard output that ${lines === 1 ? 'is' : 'are'} not JSON-RPC.`,
    },
    {
      code: 'id-as-text',
      count: idsAsText,
      message: `It sent the id of ${counted(idsAsText, 'request')} back as a text.`,
    },
    { code: 'array-answer', count: arrays, message: `It wrote ${counted(arrays, 'line')} with an array.` },
  ];
  return found.flatMap(({ count, ...finding }) => (count > 0 ? [finding] : []));
}

/** An account that signs its requests is not used for them. */
async function asPlainHttp(
  definition: InstanceDefinition,
  fetch: BackendFetch,
  { signal, ...time }: Pick<ExamineOptions, 'signal'> & ProbeTime,
): Promise<Finding[]> {
  const { endpoint, auth, transport, headers } = definition;
  const isPlain = isNetworked(definition) && TRANSPORT_TRAITS[transport].onlyEra === undefined;
  if (endpoint === undefined || auth !== undefined || !isPlain) return [];
  const send = async (request: BackendFetchRequest) => {
    signal?.throwIfAborted(); // its caller left
    return await fetch.send(endpoint, endpoint, request);
  };
  return probeEndpoint(endpoint, headers, send, time);
}

async function faultsOfItems(
  list: ListField,
  items: readonly JsonObject[],
  scheduler: TaskScheduler,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const counts = new Map<FaultCode, number>();
  const names = new Set<string>();
  const key = KEY_FIELDS[list];
  const add = (code: FaultCode, item: JsonObject, index: number, what: string) => {
    const count = (counts.get(code) ?? 0) + 1;
    counts.set(code, count);
    if (count > NAMED) return;
    const written = item[key];
    const name =
      typeof written === 'string' && written !== '' ? written.slice(0, 100) : `number ${index + 1}`;
    findings.push({ code, list, name, message: `${name}: ${what}.` });
  };
  await scheduler.each(items.entries(), ([index, item]) => {
    const checked = checkedItem(list, item);
    if ('reason' in checked) add(checked.fault, item, index, checked.reason);
    else
      for (const field of changedFields(item, checked.item))
        add(FIELD_FAULTS[field] ?? 'optional-field', item, index, `its ${field} is not what clients accept`);
    const name = item[key];
    if (typeof name !== 'string') return;
    if (names.has(name)) add('duplicate-name', item, index, `another item has this ${key}, too`);
    names.add(name);
    if (list !== 'tools') return;
    if (name !== '' && !SAFE_NAME.test(name))
      add('unsafe-name', item, index, 'many clients refuse this name');
    const union = unionAt(item.inputSchema);
    if (union !== undefined) add('root-union', item, index, `its input schema has ${union} at its root`);
  });
  for (const [code, count] of counts)
    if (count > NAMED)
      findings.push({
        code,
        list,
        message: `${count - NAMED} more of the list ${list} have the same fault.`,
      });
  return findings;
}

const SAFE_NAME = /^[A-Za-z0-9_-]{1,64}$/;

const FIELD_FAULTS: Readonly<Record<string, FaultCode>> = {
  inputSchema: 'input-schema',
  outputSchema: 'output-schema',
  name: 'no-name',
};

/** The fields that a client could not use as they are. */
function changedFields(before: JsonObject, after: JsonObject): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.filter((name) => before[name] !== after[name]);
}

function unionAt(schema: unknown): string | undefined {
  if (!isJsonObject(schema)) return undefined;
  return ['anyOf', 'oneOf', 'allOf'].find((keyword) => Array.isArray(schema[keyword]));
}
