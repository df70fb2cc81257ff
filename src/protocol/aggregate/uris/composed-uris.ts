// The composed form of a URI that several templates of an aggregate have: `<scheme>://<template>/<rest>`. It is made and
// read here, and put into results by scanning them: all other bytes stay. Source: ADR 234.

import { JsonText } from '../../../domain/json/json.ts';
import { editedFields, editedItems } from '../../../domain/json/json-fields.ts';
import { QUOTE } from '../../../domain/json/json-scanner.ts';
import type { Notification } from '../../../domain/mcp/client.ts';
import { RESOURCE_UPDATED } from '../../../domain/mcp/mcp.ts';
import { enclosingUris, isAboutOneOf } from '../../../domain/mcp/resource-uris.ts';
import { TEMPLATE_NAME } from '../../../domain/template-name.ts';

/** A resource at its template. */
export interface ResourceTarget {
  readonly template: string;
  readonly uri: string;
}

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*:)(\/\/)?/;
const COMPOSED = new RegExp(`^([A-Za-z][A-Za-z0-9+.-]*:)//(${TEMPLATE_NAME})/(.*)$`, 's');
const SKILL = 'skill://';
/** Levels of a result in which URIs are translated. Those of skills have four. */
const MAX_LEVELS = 8;

/** The composed URI; undefined for a text without a scheme, or whose scheme is an expression of a URI template. */
export function composedUri({ template, uri }: ResourceTarget): string | undefined {
  const [beginning, scheme] = SCHEME.exec(uri) ?? [];
  return beginning === undefined ? undefined : `${scheme}//${template}/${uri.slice(beginning.length)}`;
}

/** The targets that a composed URI may stand for, the usual form first; none for any other URI. */
export function partsOfComposed(uri: string): readonly ResourceTarget[] {
  const [, scheme = '', template = '', rest = ''] = COMPOSED.exec(uri) ?? [];
  if (template === '') return [];
  return [`${scheme}//${rest}`, `${scheme}${rest}`].map((own) => ({ template, uri: own }));
}

/** The unit of ownership of a URI: the URI itself, or the skill that it belongs to. */
export function ownedAs(uri: string): string {
  return uri.startsWith(SKILL) ? SKILL + uri.slice(SKILL.length).split('/', 1)[0] : uri;
}

export function isOfSkill(uri: string): boolean {
  return uri.startsWith(SKILL);
}

/**
 * The URI as its client names it: `asked` stands for `own`, and the URI for the same resource, a part of it, or
 * another file of the same skill. Undefined for any other URI.
 */
export function asAsked(uri: string, asked: string, own: string): string | undefined {
  if (ownedAs(uri) !== ownedAs(own) && !isAboutOneOf(uri, new Set([own]))) return undefined;
  const rest = (whole: string) => whole.slice(SCHEME.exec(whole)?.[0].length ?? 0);
  return asked.slice(0, asked.length - rest(own).length) + rest(uri);
}

/** True for the notice that a resource has changed. */
export function isUpdate<E extends { readonly kind: string }>(event: E): event is E & Notification {
  return event.kind === 'notification' && Reflect.get(event, 'method') === RESOURCE_UPDATED;
}

/** The subscriptions of a client: by the URI at the template, the URIs as the client named them. */
export type AskedNames = ReadonlyMap<string, readonly string[]>;

/**
 * The URIs by which the client named them, by the URI at the template: `asked` is the URI as the client named it, `own` that of
 * the template.
 */
export function askedNames(subscribed: Iterable<readonly [asked: string, own: string]>): AskedNames {
  const names = new Map<string, string[]>();
  for (const [asked, own] of subscribed) {
    const known = names.get(own);
    if (known === undefined) names.set(own, [asked]);
    else known.push(asked);
  }
  return names;
}

/**
 * An update for a client: once for each name. The same one when the client subscribed to none of them; none of a resource
 * that is not served.
 */
export function updatesAsAsked(
  update: Notification,
  names: AskedNames,
  isServed: (uri: string) => boolean,
): readonly Notification[] {
  const { uri } = update.params;
  if (typeof uri !== 'string' || !isServed(uri)) return [];
  const named = new Set<string>();
  for (const own of enclosingUris(uri))
    for (const asked of names.get(own) ?? []) named.add(asAsked(uri, asked, own) ?? asked);
  if (named.size === 0) return [update];
  return [...named].map((each) =>
    each === uri ? update : { ...update, params: { ...update.params, uri: each } },
  );
}

/** The fields that are kept as they are: they have another meaning, or are not texts of the gateway. */
const KEPT: ReadonlySet<string> = new Set(['_meta', 'frontmatter', 'inputRequests']);

/** A result with each `uri` as `shown` says. The same one when nothing changes. */
export function withShownUris(result: JsonText, shown: (uri: string) => string): JsonText {
  const bytes = shownUris(result.bytes, shown, MAX_LEVELS);
  return bytes === result.bytes ? result : JsonText.ofBytes(bytes);
}

function shownUris(json: Buffer, shown: (uri: string) => string, levels: number): Buffer {
  if (levels === 0) return json;
  const inner = (value: Buffer) => {
    const edited = shownUris(value, shown, levels - 1);
    return edited === value ? undefined : edited;
  };
  const edited = editedItems(json, inner);
  if (edited !== json) return edited;
  return editedFields(json, (key, value) => {
    if (key !== 'uri' || value[0] !== QUOTE) return KEPT.has(key) ? undefined : inner(value);
    const uri = String(JSON.parse(value.toString()));
    const named = shown(uri);
    return named === uri ? undefined : Buffer.from(JSON.stringify(named));
  });
}
