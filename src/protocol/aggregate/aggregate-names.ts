// Names when all templates are served as one server: tools and prompts are `{template}__{name}`, instances
// `{template}/{instance}`. Names of templates contain neither underscores nor slashes, so that the first ones separate the parts.

import { createHash } from 'node:crypto';
import type { Answer, SentTo } from '../../domain/exchange.ts';

/** Longest name that clients accept for a tool. */
export const MOST_NAME_CHARACTERS = 64;
const SEPARATOR = '__';
const MOST_TEMPLATE_CHARACTERS = 24;
const HASH_CHARACTERS = 8;

export interface OwnName {
  readonly template: string;
  readonly name: string;
}

/** The aggregate name. A name that is too long is cut and ends in eight digits of its SHA-256. */
export function aggregateName({ template, name }: OwnName): string {
  const full = `${template}${SEPARATOR}${name}`;
  if (full.length <= MOST_NAME_CHARACTERS) return full;
  const hash = createHash('sha256').update(full).digest('hex').slice(0, HASH_CHARACTERS);
  const head = template.slice(0, MOST_TEMPLATE_CHARACTERS);
  const room = MOST_NAME_CHARACTERS - head.length - SEPARATOR.length - HASH_CHARACTERS - 1;
  return `${head}${SEPARATOR}${name.slice(0, room).toWellFormed()}_${hash}`;
}

/** The two parts of a name that was not cut; undefined for any other text. */
export function splitName(aggregated: string): OwnName | undefined {
  const at = aggregated.indexOf(SEPARATOR);
  if (at <= 0) return undefined;
  return { template: aggregated.slice(0, at), name: aggregated.slice(at + SEPARATOR.length) };
}

/** True for a name that may have been cut: only a list of names can resolve it. */
export function mayBeCut(aggregated: string): boolean {
  return aggregated.length >= MOST_NAME_CHARACTERS - MOST_TEMPLATE_CHARACTERS && CUT.test(aggregated);
}

const CUT = /_[0-9a-f]{8}$/;

export function aggregateInstance({ template, id }: SentTo): string {
  return `${template}/${id}`;
}

export function splitInstance(aggregated: string): SentTo | undefined {
  const at = aggregated.indexOf('/');
  return at === -1 ? undefined : { template: aggregated.slice(0, at), id: aggregated.slice(at + 1) };
}

export function withAggregateInstance(template: string): (answer: Answer) => Answer {
  return (answer) => ({ ...answer, instanceId: aggregateInstance({ template, id: answer.instanceId }) });
}
