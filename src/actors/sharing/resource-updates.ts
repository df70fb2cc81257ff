// Updates of resources in one conversation with a legacy backend: asks for them together with others, and picks out of what
// the conversation says those that are wanted.

import { filter, Observable, type Subscription } from 'rxjs';
import type { ServerMessage, ServerNotification } from '../../domain/client.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
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

function hear(
  messages$: Observable<ServerMessage>,
  uris: ReadonlySet<string>,
  next: (notification: ServerNotification) => void,
  ended: () => void,
): Subscription {
  const isUpdate = (message: ServerMessage): message is ServerNotification =>
    message.kind === 'notification' &&
    message.method === 'notifications/resources/updated' &&
    isAboutOneOf(message.params.uri, uris);
  return messages$.pipe(filter(isUpdate)).subscribe({ next, error: ended, complete: ended });
}
