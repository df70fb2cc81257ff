// The approval of a tool: the definitions of it that clients may see and call while its template, or a view, is
// pinned. Source: ADR 238.

import type { JsonObject } from '../json/json.ts';

export interface Approval {
  /** The id of a template or a view, which share their names. */
  readonly scope: string;
  /** The template's own name for it; in a view after the id of the template and `/`. */
  readonly tool: string;
  /**
   * The SHA-256 of the approved definitions, the newest last: at most MAX_DIGESTS. Any of them passes, so that servers
   * can be upgraded one by one.
   */
  readonly digests: readonly string[];
}

/** What an approval adds to the approved definitions of a tool. `digests`: the new ones, the newest last. */
export interface NewApproval extends Approval {
  /** The definition that the newest digest covers, for a comparison with the listed one. */
  readonly definition: JsonObject;
}

export const MAX_DIGESTS = 8;

/** The approved digests after an approval of more. The oldest ones make room. */
export function withDigests(approved: readonly string[], more: readonly string[]): string[] {
  return [...new Set([...approved, ...more])].slice(-MAX_DIGESTS);
}

/** The reasons why a tool waits for approval, as clauses. */
export const WAITING_REASONS = {
  changed: 'its definition has changed since it was approved',
  new: 'it is new and waits for approval',
};

/** The key by which an approval of a view names a tool, and a view a tool or prompt with a bare name. */
export function itemKey(template: string, tool: string): string {
  return `${template}/${tool}`;
}

/** The parts of an `itemKey`. */
export function splitItemKey(key: string): { readonly template: string; readonly tool: string } {
  const at = key.indexOf('/');
  return { template: key.slice(0, at), tool: key.slice(at + 1) };
}

/**
 * The part of a tool that is approved: what a model reads about it, and how it is called. Fields that only programs
 * use may change.
 */
export function approvedPart(tool: JsonObject): JsonObject {
  const { name, title, description, inputSchema, outputSchema, annotations, _meta } = tool;
  const ui = typeof _meta === 'object' && _meta !== null && !Array.isArray(_meta) ? _meta.ui : undefined;
  const fields = { name, title, description, inputSchema, outputSchema, annotations, ui };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}
