// Which methods ask for a list, and for which. What is listed is not known here.

import { LIST_METHODS, type ListField } from '../../domain/mcp.ts';

/** The list that a method asks for; undefined for every other method. */
export function listOf(method: string): ListField | undefined {
  return LISTS.get(method);
}

const LISTS: ReadonlyMap<string, ListField> = new Map([
  [LIST_METHODS.tools, 'tools'],
  [LIST_METHODS.prompts, 'prompts'],
  [LIST_METHODS.resources, 'resources'],
  [LIST_METHODS.resourceTemplates, 'resourceTemplates'],
]);
