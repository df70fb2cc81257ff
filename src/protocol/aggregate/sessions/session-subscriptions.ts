// The subscriptions of an aggregate session, in its value: by template, the URIs that its client named, and the targets of the
// composed ones. A client gets updates under each URI that it named.

import type { ExchangeRequest, SourcedEvent } from '../../../domain/calls/exchange.ts';
import { ownField } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ServerMessage } from '../../../domain/mcp/client.ts';
import { SUBSCRIBE, UNSUBSCRIBE } from '../../../domain/mcp/mcp.ts';
import type { AggregateSessionValue } from '../../../domain/sessions/session-value.ts';
import { type AskedNames, askedNames, isUpdate, updatesAsAsked } from '../uris/composed-uris.ts';

/** The end of a subscription at each template where it was made, wherever its URI leads now. */
interface EndOfSubscription {
  /** The value without it; the template that answers still has it. */
  readonly value: AggregateSessionValue;
  /** The request that answers the client. Undefined if it has the resource under another name, too: no template gets a request. */
  readonly answering?: RequestAt;
  readonly others: readonly RequestAt[];
}

interface RequestAt {
  readonly template: string;
  readonly request: ExchangeRequest;
}

/** Undefined unless the request ends subscriptions that the client made under this URI. */
export function endOfSubscription(
  value: AggregateSessionValue,
  request: ExchangeRequest,
): EndOfSubscription | undefined {
  const { method, params: { uri: asked } = {} } = request;
  if (method !== UNSUBSCRIBE || typeof asked !== 'string') return undefined;
  const templates = Object.keys(value.uris).filter((each) => value.uris[each]?.includes(asked));
  if (templates.length === 0) return undefined;
  let left = value;
  const requests: RequestAt[] = [];
  for (const template of templates) {
    const subscribed = subscribedAt(value, template);
    const others = subscribed.filter(([named]) => named !== asked);
    const [, uri = asked] = subscribed.find(([named]) => named === asked) ?? [];
    left = withUris(left, template, others);
    if (!others.some(([, own]) => own === uri))
      requests.push({ template, request: { ...request, params: { ...request.params, uri } } });
  }
  const answering = requests.pop();
  if (answering === undefined) return { value: left, others: [] };
  const kept = withUris(left, answering.template, subscribedAt(value, answering.template));
  return { value: kept, answering, others: requests };
}

/** The value after a request that its template answered; the same if nothing changes. `asked`: the request of the client. */
export function afterAnswer(
  value: AggregateSessionValue,
  template: string,
  { method, params: { uri } = {} }: ExchangeRequest,
  { params: { uri: asked } = {} }: ExchangeRequest,
): AggregateSessionValue {
  if (typeof uri !== 'string' || typeof asked !== 'string') return value;
  const subscribed = subscribedAt(value, template);
  if (method === UNSUBSCRIBE) {
    const left = subscribed.filter(([, own]) => own !== uri);
    return left.length < subscribed.length ? withUris(value, template, left) : value;
  }
  const isNew = method === SUBSCRIBE && !subscribed.some(([named]) => named === asked);
  return isNew && subscribed.length < LIMITS.subscriptionsPerClient
    ? withUris(value, template, [...subscribed, [asked, uri]])
    : value;
}

/** The value without the subscriptions of a template. */
export function withoutSubscriptions(value: AggregateSessionValue, template: string): AggregateSessionValue {
  return withUris(value, template, []);
}

/** The URIs as the client named them. */
export function askedUris({ uris }: AggregateSessionValue, template: string): readonly string[] {
  return ownField(uris, template) ?? [];
}

/** The URIs at the template. */
export function subscribedUris(value: AggregateSessionValue, template: string): ReadonlySet<string> {
  return new Set(subscribedAt(value, template).map(([, own]) => own));
}

/** The names of the client in updates. They are gathered once for each value: there may be thousands of updates per second. */
export class NamedUpdates {
  readonly #value: () => AggregateSessionValue;
  readonly #isServed: (template: string, uri: string) => boolean;
  readonly #names = new Map<string, AskedNames>();
  #of: AggregateSessionValue | undefined;

  constructor(value: () => AggregateSessionValue, isServed: (template: string, uri: string) => boolean) {
    this.#value = value;
    this.#isServed = isServed;
  }

  /** A message of the template, as its client gets it: an update has the names of the client, unless its resource is not served. */
  messages(template: string, message: ServerMessage): readonly ServerMessage[] {
    if (!isUpdate(message)) return [message];
    return updatesAsAsked(message, this.#namesAt(template), (uri) => this.#isServed(template, uri));
  }

  /** The messages for the client (see `messages`) for an event that comes while the template answers. */
  answers(template: string, sourced: SourcedEvent): readonly SourcedEvent[] {
    const { event } = sourced;
    if (!isUpdate(event)) return [sourced];
    const updates = updatesAsAsked(event, this.#namesAt(template), (uri) => this.#isServed(template, uri));
    return updates.map((update) => ({ ...sourced, event: update }));
  }

  #namesAt(template: string): AskedNames {
    const value = this.#value();
    if (this.#of !== value) this.#names.clear();
    this.#of = value;
    const names = this.#names.get(template) ?? askedNames(subscribedAt(value, template));
    this.#names.set(template, names);
    return names;
  }
}

function subscribedAt(
  { uris, composed }: AggregateSessionValue,
  template: string,
): readonly (readonly [asked: string, own: string])[] {
  const differing = ownField(composed, template);
  return (ownField(uris, template) ?? []).map((asked) => [asked, ownField(differing, asked) ?? asked]);
}

function withUris(
  value: AggregateSessionValue,
  template: string,
  subscribed: readonly (readonly [asked: string, own: string])[],
): AggregateSessionValue {
  const { composed: before = {}, ...others } = value;
  const named = subscribed.map(([asked]) => asked);
  const uris = withEntry(value.uris, template, named);
  const differing = Object.fromEntries(subscribed.filter(([asked, own]) => asked !== own));
  const composed = withEntry(before, template, differing);
  return { ...others, uris, ...(Object.keys(composed).length > 0 && { composed }) };
}

/** The record with this entry, or without the key when the value is empty. */
function withEntry<V extends object>(
  entries: Readonly<Record<string, V>>,
  key: string,
  value: V,
): Record<string, V> {
  const { [key]: _, ...others } = entries;
  return Object.keys(value).length === 0 ? others : { ...others, [key]: value };
}
