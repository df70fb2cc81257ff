// Updates of resources in one conversation with a legacy backend: asks for them together with others, and picks out of what
// the conversation says those that are wanted.

import { filter, Observable, type Subscription } from 'rxjs';
import type { ServerMessage, ServerNotification } from '../domain/client.ts';
import type { JsonObject } from '../domain/json.ts';
import type { SharedConversation, SharedSubscriptions } from './shared-subscriptions.ts';

/** A conversation, and what it says outside of exchanges. */
export interface UpdateSource {
  readonly conversation: SharedConversation;
  readonly messages$: Observable<ServerMessage>;
}

/** Cold: updates of these resources. Never errors; completes when the messages do. */
export function resourceUpdates(
  { conversation, messages$ }: UpdateSource,
  uris: ReadonlySet<string>,
  subscriptions: SharedSubscriptions,
): Observable<ServerNotification> {
  return new Observable<ServerNotification>((subscriber) => {
    subscriber.add(hear(messages$, uris, subscriber.next.bind(subscriber), () => subscriber.complete()));
    for (const uri of uris) subscriber.add(subscriptions.subscribe(conversation, uri).release);
  });
}

/** True for an update of one of these resources, or of a part of one. Source: MCP server/resources#subscriptions. */
export function isAbout({ uri }: JsonObject, uris: ReadonlySet<string>): boolean {
  if (typeof uri !== 'string') return false;
  if (uris.has(uri)) return true;
  for (let end = lastCut(uri, uri.length); end > 0; end = lastCut(uri, end)) {
    if (uris.has(uri.slice(0, end)) || uris.has(uri.slice(0, end + 1))) return true;
  }
  return false;
}

/** Where the last part before `end` begins; -1 when there is none. */
function lastCut(uri: string, end: number): number {
  return Math.max(...['/', '?', '#'].map((mark) => uri.lastIndexOf(mark, end - 1)));
}

function hear(
  messages$: Observable<ServerMessage>,
  uris: ReadonlySet<string>,
  next: (notification: ServerNotification) => void,
  ended: () => void,
): Subscription {
  const isUpdate = (message: ServerMessage): message is ServerNotification =>
    message.kind === 'notification' &&
    message.method === 'notifications/resources/updated' &&
    isAbout(message.params, uris);
  return messages$.pipe(filter(isUpdate)).subscribe({ next, error: ended, complete: ended });
}
