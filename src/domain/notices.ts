// What servers tell by themselves: that a list changed, that a resource did. Which notifications say so, and which servers
// announce that they will. Source: MCP 2025-11-25 and 2026-07-28 server/tools, server/prompts, server/resources.

import { isJsonObject } from './json.ts';
import type { ListField } from './mcp.ts';

/** Lists that there are notices of; `resources` stands for their templates, too. */
export const NOTICED_LISTS = ['tools', 'prompts', 'resources'] as const satisfies readonly ListField[];

/** The notification that tells of a change of each list. */
export const LIST_NOTICES: Readonly<Record<ListField, string>> = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
  resourceTemplates: 'notifications/resources/list_changed',
};

/** The list that a notification is about; undefined for any other. */
export function changedList(method: string): ListField | undefined {
  return CHANGED.get(method);
}

/** True when a server with these capabilities says when the list changes. */
export function announcesChanges(capabilities: Readonly<Record<string, unknown>>, list: ListField): boolean {
  const offered = capabilities[list];
  return isJsonObject(offered) && offered.listChanged === true;
}

/** True when a server with these capabilities can be subscribed to for updates of resources. */
export function announcesUpdates({ resources }: Readonly<Record<string, unknown>>): boolean {
  return isJsonObject(resources) && resources.subscribe === true;
}

const CHANGED: ReadonlyMap<string, ListField> = new Map(
  NOTICED_LISTS.map((list) => [LIST_NOTICES[list], list]),
);
