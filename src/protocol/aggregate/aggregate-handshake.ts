// The handshake result of an aggregate: the united capabilities of its templates, and their instructions, each under the name
// of its template. Source: ADR 29.

import {
  definedFields,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownField,
  valuesIn,
} from '../../domain/json/json.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { SEARCH_INSTRUCTIONS } from './search-mode.ts';
import type { Presentation, ViewInfo } from './selection.ts';

/** The most characters of all instructions, and the most values, keys included, of one united capability. */
const MAX_INSTRUCTIONS = 64 * 1024;
const MAX_VALUES = 2_000;
const INTRODUCTION = 'The names of tools and prompts begin with the name of their server and `__`.';

/** The result always announces lists and their changes, since templates come and go; everything else if an instance has it. */
export function aggregateHandshakeResult(
  templates: readonly { readonly template: string; readonly handshakes: readonly Handshake[] }[],
  presentation: Presentation = {},
) {
  const { mode, names, instructions: own, view } = presentation;
  const partial = mode === 'search' ? [SEARCH_INSTRUCTIONS] : [];
  const all = [...partial, own ?? instructionsOf(templates, names !== 'bare')].filter(isText);
  const instructions = all.length === 0 ? undefined : all.join('\n\n');
  return {
    capabilities: capabilitiesOf(templates.flatMap(({ handshakes }) => handshakes)),
    serverInfo: view === undefined ? GATEWAY_INFO : serverInfoOf(view),
    ...definedFields({ instructions }),
  };
}

function serverInfoOf({ name, title, version = GATEWAY_INFO.version }: ViewInfo) {
  return { name, ...definedFields({ title }), version };
}

function capabilitiesOf(handshakes: readonly Handshake[]): JsonObject {
  const offers = (name: string) => handshakes.some(({ capabilities }) => capabilities[name] !== undefined);
  const legacy = handshakes.filter(({ era }) => era === 'legacy');
  // A list of all tasks is not carried: each template has its own cursors.
  const { list: _, ...tasks } = united(legacy, 'tasks', TASK_LEVELS) ?? {};
  const [extensions, experimental] = [united(handshakes, 'extensions'), united(handshakes, 'experimental')];
  return {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    ...(offers('completions') && { completions: {} }),
    ...(offers('logging') && { logging: {} }),
    ...(Object.keys(tasks).length > 0 && { tasks }),
    ...definedFields({ extensions, experimental }),
  };
}

/** Levels of the capability `tasks` that have objects only, the last one in `requests.tools.call`. */
const TASK_LEVELS = 3;

/**
 * A capability with the fields that any of the handshakes has in it. One that would be too large is left out, and so is
 * each field down to this level that is not an object: clients refuse the whole answer for it.
 */
function united(handshakes: readonly Handshake[], name: string, levels = 1): JsonObject | undefined {
  const known = new Set<string>();
  let all: JsonObject | undefined;
  for (const { capabilities } of handshakes) {
    const offered = capabilities[name];
    if (!isJsonObject(offered) || known.size === known.add(JSON.stringify(offered)).size) continue;
    const own = objectsIn(offered, levels);
    const next: JsonObject = all === undefined ? own : inEither(all, own);
    if (valuesIn(next, MAX_VALUES) <= MAX_VALUES) all = next;
  }
  return all;
}

function objectsIn(object: JsonObject, levels: number): JsonObject {
  if (levels === 0) return object;
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) =>
      isJsonObject(value) ? [[key, objectsIn(value, levels - 1)]] : [],
    ),
  );
}

function inEither(a: JsonObject, b: JsonObject): JsonObject {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...keys].map((key) => [key, either(ownField(a, key), ownField(b, key))]));
}

/** Objects and lists are united; of other values the first one counts. */
function either(a: JsonValue | undefined, b: JsonValue | undefined): JsonValue {
  if (isJsonObject(a) && isJsonObject(b)) return inEither(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    const texts = new Set(a.map((value) => JSON.stringify(value)));
    return [...a, ...b.filter((value) => !texts.has(JSON.stringify(value)))];
  }
  return a ?? b ?? null;
}

/** The instructions of the templates: the first that an instance of each has, given as a whole or named as left out. */
function instructionsOf(
  templates: readonly { readonly template: string; readonly handshakes: readonly Handshake[] }[],
  isPrefixed: boolean,
): string | undefined {
  const sections = isPrefixed ? [INTRODUCTION] : [];
  const omitted: string[] = [];
  let characters = 0;
  for (const { template, handshakes } of templates) {
    const own = handshakes.map(({ greeting }) => greeting.instructions).find(isText);
    if (own === undefined) continue;
    const isShown = characters + own.length <= MAX_INSTRUCTIONS;
    characters += isShown ? own.length : 0;
    if (isShown) sections.push(`## ${template}\n\n${own}`);
    else omitted.push(template);
  }
  if (omitted.length > 0)
    sections.push(`The instructions of these servers are too long: ${omitted.join(', ')}.`);
  return sections.length > (isPrefixed ? 1 : 0) ? sections.join('\n\n') : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
