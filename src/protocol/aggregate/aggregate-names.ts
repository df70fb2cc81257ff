// Names in an aggregate: tools and prompts are `{template}__{name}` or a mapped form of it, instances
// `{template}/{instance}`. The rule is never changed, since clients keep names in their lists of allowed tools. Source: ADR 93.

import { hash } from 'node:crypto';
import type { SentTo, SourcedEvent } from '../../domain/calls/exchange.ts';

/** The most characters that clients accept in the name of a tool. */
const MAX_NAME_CHARACTERS = 64;
const SEPARATOR = '__';
const DIGITS = 16;
const BEGINNING_CHARACTERS = MAX_NAME_CHARACTERS - DIGITS - 1;
/** The form of a tool name that clients accept. */
const SAFE = new RegExp(`^[A-Za-z0-9_-]{1,${MAX_NAME_CHARACTERS}}$`);
const LIKE_MAPPED = new RegExp(`_[0-9A-Fa-f]{${DIGITS}}$`);

export interface OwnName {
  readonly template: string;
  readonly name: string;
}

/**
 * The aggregate name: up to 64 letters, digits, `_` and `-`, and never the same for two pairs of template and
 * name. `{template}__{name}` stays as it is where that is possible. Every other one is mapped: its beginning, with
 * `_` for other characters, then `_` and 16 digits of its SHA-256. Both parts must be well-formed Unicode.
 * `length`: most characters. `wished`: the new name of a renamed tool.
 */
export function aggregateName(
  { template, name }: OwnName,
  length: number = MAX_NAME_CHARACTERS,
  wished: string = name,
): string {
  const full = `${template}${SEPARATOR}${wished}`;
  if (isPlain(full) && full.length <= length && full.indexOf(SEPARATOR) === template.length) return full;
  return `${beginningOf(full, length)}_${digest(template, name)}`;
}

/** The name of `aggregateName` without a prefix: `wished` where that is possible. An empty name is mapped. */
export function safeName(template: string, name: string, wished: string, length: number): string {
  if (isPlain(wished) && wished.length <= length) return wished;
  return `${beginningOf(wished || name, length)}_${digest(template, name)}`;
}

/** The two parts of a name that is not mapped; undefined for any other text. */
export function splitName(aggregated: string): OwnName | undefined {
  const at = aggregated.indexOf(SEPARATOR);
  const nameAt = at + SEPARATOR.length;
  if (at <= 0 || nameAt === aggregated.length || !isPlain(aggregated)) return undefined;
  return { template: aggregated.slice(0, at), name: aggregated.slice(nameAt) };
}

/** True for a name that may be mapped: only a list of names can resolve it. */
export function mayBeMapped(aggregated: string): boolean {
  return LIKE_MAPPED.test(aggregated) && SAFE.test(aggregated);
}

/**
 * False when the mapped name `aggregated` cannot belong to this template or, with a `name`, to that name of it. It compares
 * beginnings only, so it needs no hash.
 */
export function mayBeFrom(aggregated: string, template: string, name = ''): boolean {
  const beginning = beginningOf(`${template}${SEPARATOR}${name}`);
  const mapped = aggregated.slice(0, -DIGITS - 1);
  return name === '' ? mapped.startsWith(beginning) : mapped === beginning;
}

function isPlain(full: string): boolean {
  return SAFE.test(full) && !LIKE_MAPPED.test(full);
}

function beginningOf(full: string, length: number = MAX_NAME_CHARACTERS): string {
  const characters = BEGINNING_CHARACTERS - MAX_NAME_CHARACTERS + length;
  const units = full.slice(0, 2 * characters); // a character has one or two
  return units.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, characters);
}

function digest(template: string, name: string): string {
  return hash('sha256', `${template}\0${name}`, 'hex').slice(0, DIGITS);
}

/** The id of an instance in an aggregate: after its template, since ids of two templates may be equal. */
export function aggregateInstance({ template, id }: SentTo): string {
  return `${template}/${id}`;
}

/** The id of an instance as the clients of a path see it: with its template, unless the path names that. */
export function shownInstance(sentTo: SentTo, pathName: string | undefined): string {
  return sentTo.template === pathName ? sentTo.id : aggregateInstance(sentTo);
}

/** The parts of an `aggregateInstance`; undefined for any other id. */
export function splitInstance(aggregated: string): SentTo | undefined {
  const at = aggregated.indexOf('/');
  return at === -1 ? undefined : { template: aggregated.slice(0, at), id: aggregated.slice(at + 1) };
}

export function withAggregateInstance(template: string): (sourced: SourcedEvent) => SourcedEvent {
  return (sourced) => ({ ...sourced, instanceId: aggregateInstance({ template, id: sourced.instanceId }) });
}
