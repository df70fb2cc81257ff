// What servers tell by themselves: that a list changed, that a resource did. Which notifications say so, and which servers
// announce that they will. Source: MCP 2025-11-25 and 2026-07-28 server/tools, server/prompts, server/resources.

import { isJsonObject } from './json.ts';
import type { ListField } from './mcp.ts';

/** Lists with change notifications; `resources` stands for resource templates, too. */
export const NOTICED_LISTS = ['tools', 'prompts', 'resources'] as const satisfies readonly ListField[];

/** The notification of a change of each list. */
export const LIST_NOTICES: Readonly<Record<ListField, string>> = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
  resourceTemplates: 'notifications/resources/list_changed',
};

/** True for a notification that the protocol does not know: a server and a client agreed on it. */
export function isCustomNotice(method: string): boolean {
  return !KNOWN.has(method);
}

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

/** Of both eras, in both directions. Source: MCP 2025-11-25 and 2026-07-28 schema, ServerNotification and ClientNotification. */
const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(LIST_NOTICES),
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'notifications/roots/list_changed',
  'notifications/resources/updated',
  'notifications/elicitation/complete',
  'notifications/subscriptions/acknowledged',
  'notifications/tasks/status',
]);

const CHANGED: ReadonlyMap<string, ListField> = new Map(
  NOTICED_LISTS.map((list) => [LIST_NOTICES[list], list]),
);
